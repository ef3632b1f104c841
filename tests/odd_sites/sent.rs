//! What is sent: Accept by what is read, and URLs as browsers write them.
