-- The state of one host for all processes that share a budget. One call is one decision, and touches one hash tag.
--
-- KEYS  1 the bucket's mark: since when the server is known to remember, and which server that is
--       2 the host's state, a hash of the fields that differ from those of a host without history
--       3 its permits in use: a sorted set of leases by the end of their life
-- ARGV  1 the operation: acquire, tell or mark    2 the present in a test, else 0: the server's
--       3 the server's run id as the client knows it, empty where it does not, ? to ask    4 the life of a lease
--       5 max_in_flight  6 min_delay  7 max_delay  8 latency_factor  9 pause for 429  10 pause for 503  11 blocked_after
--       12 what is left of the pause that the client knows  13 since its last start  14 since its last end (-1: none)
--       15 the lease, or empty
--       acquire: 16 pauses only  17 delay taken  18 starts at its last start  19 origin or empty  20 Crawl-delay (-1: none)
--                21 how late the grant may be acted upon  22 counted already, when it started without a permit
--       tell:    16 lease: renew, end, unused or none  17 signal or empty  18 wait (-1: none)  19 a success for the latency
--                20 page  21 share added to a pause  22 since its start  23 latency (-1: unknown)
-- All spans are microseconds. The rules are those of `etiquette_core::decide::host::HostState`, and functions have the
-- names that they have there.

local HOUR = 3600000000
local MINUTE = 60000000
local HALF_HOUR = 1800000000
local DAY = 86400000000
local LONGEST = 36500 * DAY
local BLOCKED = 60000000
local LATENCY_KEPT = 600000000
local MARK_KEPT = 30 * DAY

local op = ARGV[1]
local now = tonumber(ARGV[2])
if now == 0 then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000000 + tonumber(time[2])
end
local run = ARGV[3]
if run == '?' then
  -- Where INFO is not allowed, a restart goes unseen unless it empties the server.
  local info = redis.pcall('INFO', 'server')
  run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
end
local lease = tonumber(ARGV[4])

-- A server that does not remember may have forgotten permits that are in use: nobody starts before each of them was
-- renewed or is over.
local mark = redis.call('HMGET', KEYS[1], 'since', 'run')
local since = tonumber(mark[1] or '')
-- It is kept so long that one call of many suffices to renew it.
local renew_mark = op == 'mark' or now % 64 == 0
if not since or (run ~= '' and mark[2] ~= run) or now < since then
  since, renew_mark = now, true
  redis.call('HSET', KEYS[1], 'since', string.format('%.0f', now), 'run', run)
end
if op == 'mark' then
  redis.call('PEXPIRE', KEYS[1], MARK_KEPT / 1000)
  return { math.max(since + lease - now, 0) }
end

local max_in_flight = tonumber(ARGV[5])
local min_delay, max_delay, factor = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local pause_429, pause_503, blocked_after = tonumber(ARGV[9]), tonumber(ARGV[10]), tonumber(ARGV[11])

local raw = redis.call('HGETALL', KEYS[2])
local before, s = {}, {}
for i = 1, #raw, 2 do
  local value = raw[i] == 'cd' and raw[i + 1] or tonumber(raw[i + 1])
  before[raw[i]], s[raw[i]] = value, value
end

-- What follows from other fields is not kept, since most hosts are asked once: see the end.
if not s.seen and raw[1] then
  s.seen = math.max(max_in_flight == 1 and s.ls or 0, s.le or 0)
end
if s.sec == 0 then
  s.sec = nil
elseif s.ls and not s.sec then
  s.sec, s.sc = s.ls, 1
end

-- The permits in use, each with the end of its lease.
local held = redis.call('ZRANGE', KEYS[3], 0, -1, 'WITHSCORES')

-- A clock that was set back would make all waits longer by as much: the past moves with it.
local TIMES = { 'ls', 'lu', 'le', 'sec', 'pu', 'lk', 'rf' }
if s.seen and now < s.seen - 1000000 then
  local shift = s.seen - now
  for _, name in ipairs(TIMES) do
    if s[name] then s[name] = s[name] - shift end
  end
  for i = 2, #held, 2 do
    held[i] = string.format('%.0f', tonumber(held[i]) - shift)
    redis.call('ZADD', KEYS[3], held[i], held[i - 1])
  end
elseif s.seen then
  now = math.max(now, s.seen)
end
s.seen = now

-- Permits whose lease was not renewed in time are free again; when their bodies ended is not known.
local in_flight, first_end = 0, nil
for i = 1, #held, 2 do
  local finish = tonumber(held[i + 1])
  if finish <= now then
    s.le = math.max(s.le or 0, finish)
    redis.call('ZREM', KEYS[3], held[i])
  else
    in_flight = in_flight + 1
    first_end = math.min(first_end or finish, finish)
  end
end

local function apply_recovery()
  if (s.st or 0) > 0 and s.rf then
    local past = math.max(now - s.rf, 0)
    if s.gm and s.gm < math.floor(past / MINUTE) then
      s.gm = nil
      local ceiling = 0.9 * 0.5 ^ (math.min(s.st, 64) - 1)
      local rate = s.rt or 1
      s.rt = math.max(math.min(rate + 0.1, ceiling), rate)
    end
    if s.gh and s.gh < math.floor(past / HALF_HOUR) then
      s.gh = nil
      s.st = s.st - 1
      if s.st == 0 then
        s.rt, s.ln, s.rf, s.gm, s.gh = nil, nil, nil, nil, nil
      end
    end
  end
  local last = math.max(s.ls or 0, s.lu or 0, s.pu or 0)
  if in_flight == 0 and last > 0 and now - last >= DAY then
    s = { ls = s.ls, lu = s.lu, le = s.le, n = s.n, cd = s.cd, seen = s.seen }
  end
end

local delays
local function crawl_delays()
  if not delays then
    delays = {}
    for origin, delay, seen in string.gmatch(s.cd or '', '(%x+),(%d+),(%d+)') do
      delays[#delays + 1] = { origin, tonumber(delay), tonumber(seen) }
    end
  end
  return delays
end

local function is_live(entry)
  return now < entry[3] + math.max(entry[2], HOUR)
end

local function set_crawl_delay(origin, delay)
  local kept, found = {}, false
  for _, entry in ipairs(crawl_delays()) do
    if entry[1] == origin then
      if delay > 0 then
        kept[#kept + 1] = { origin, delay, now }
      end
      found = true
    elseif is_live(entry) then
      kept[#kept + 1] = entry
    end
  end
  if not found and delay > 0 then
    if #kept < 16 then
      kept[#kept + 1] = { origin, delay, now }
    else
      local least = 1
      for i = 2, #kept do
        if kept[i][2] < kept[least][2] then least = i end
      end
      if kept[least][2] < delay then kept[least] = { origin, delay, now } end
    end
  end
  delays = kept
  local parts = {}
  for i, entry in ipairs(kept) do
    parts[i] = string.format('%s,%.0f,%.0f', entry[1], entry[2], entry[3])
  end
  s.cd = #parts > 0 and table.concat(parts, ';') or nil
end

local function largest_crawl_delay()
  local largest = 0
  for _, entry in ipairs(crawl_delays()) do
    if is_live(entry) then largest = math.max(largest, entry[2]) end
  end
  return largest
end

local function base_delay()
  local latency = math.min((s.lat or 0) * factor, max_delay)
  return math.max(min_delay, latency, s.ln or 0, largest_crawl_delay())
end

local function scaled(delay)
  local rate = s.rt or 1
  if rate >= 1 then return delay end
  local span = math.min(delay, LONGEST) / rate
  local longest = math.max(HOUR, delay)
  if span >= longest then return longest end
  return math.max(math.ceil(span), delay)
end

local function roll_second()
  if not s.sec then
    s.sec = now
    return
  end
  local past = math.max(now - s.sec, 0)
  if past >= 1000000 then
    s.se = past < 2000000 and s.sc or nil
    s.sc = nil
    s.sec = s.sec + math.floor(past / 1000000) * 1000000
  end
end

local function count_start()
  roll_second()
  s.sc = (s.sc or 0) + 1
end

local function doubled(first, times)
  return math.min(first * 2 ^ math.min(math.max(times - 1, 0), 31), math.max(HOUR, first))
end

local function back_off()
  if (s.st or 0) == 0 then
    roll_second()
    local into = s.sec and math.max(now - s.sec, 0) / 1000000 or 0
    local earlier = (s.se or 0) * math.min(math.max(1 - into, 0), 1)
    local starts = (s.sc or 0) + math.floor(earlier)
    local learnt = math.max(math.ceil(1000000 / math.max(starts, 1)), math.ceil((s.lat or 0) / max_in_flight))
    s.ln = math.min(learnt, HOUR)
  end
  local rate = s.rt or 1
  s.rt = math.min(math.max(rate / 2, base_delay() / HOUR), rate)
  s.st = (s.st or 0) + 1
  s.lk = now
  s.gm, s.gh = nil, nil
end

local function pause(wait, share, slows)
  wait = math.min(wait, LONGEST)
  local finish = now + wait + math.min(math.ceil(wait * share), LONGEST)
  s.pu = math.max(s.pu or 0, finish)
  if slows then s.rf = s.pu end
end

-- What the client knows and the server has forgotten. Small differences are the time that messages take.
local function learn(name, instant)
  if not s[name] or instant > s[name] + 1000000 then s[name] = instant end
end

apply_recovery()
local known_pause = tonumber(ARGV[12])
if known_pause > 0 then learn('pu', now + known_pause) end
if tonumber(ARGV[13]) >= 0 then learn('ls', now - tonumber(ARGV[13])) end
if tonumber(ARGV[14]) >= 0 then learn('le', now - tonumber(ARGV[14])) end

local function record_response(signal, wait, counts, page, share, started, latency)
  if latency < 0 then
    -- Queues further in were part of it.
  elseif latency > (s.lat or 0) then
    s.lat = latency
  elseif page and counts then
    s.lat = math.ceil(((s.lat or 0) + latency) / 2)
  end
  local late = s.lk and started <= s.lk
  if page and not late then
    if signal ~= 'refused' then s.rs, s.so = nil, nil end
    if signal == 'success' or signal == 'neutral' or signal == 'refused' then s.fl, s.fp = nil, nil end
  end
  local asked = wait >= 0
  if signal == 'throttled' then
    if not late then back_off() end
    pause(asked and wait or doubled(pause_429, s.st or 0), share, true)
  elseif signal == 'unavailable' or signal == 'failed' then
    local unavailable = signal == 'unavailable'
    if not late then s.fl = (s.fl or 0) + 1 end
    if unavailable or (s.fl or 0) >= 2 or (late and (s.fp or 0) > 0) then
      if not late then
        s.fp = (s.fp or 0) + 1
        back_off()
      end
      local default = doubled(pause_503, s.fp or 0)
      if asked then
        pause(unavailable and wait or math.max(wait, default), share, true)
      else
        pause(default, share, true)
      end
    elseif asked then
      pause(wait, share, false)
    end
  elseif signal == 'refused' then
    if page then
      if not late then s.rs = (s.rs or 0) + 1 end
      if (s.rs or 0) >= blocked_after then
        if not late then
          s.so = (s.so or 0) + 1
          back_off()
        end
        pause(doubled(BLOCKED, s.so or 0), share, true)
      end
    end
    if asked then pause(wait, share, false) end
  else
    if signal == 'success' and page and not late and s.rf and started >= s.rf then
      local past = math.max(now - s.rf, 0)
      s.gm = math.floor(past / MINUTE)
      s.gh = math.floor(past / HALF_HOUR)
    end
    if asked then pause(wait, share, false) end
  end
end

local granted, wait = false, 0
local delay
if op == 'acquire' then
  if ARGV[19] ~= '' then set_crawl_delay(ARGV[19], tonumber(ARGV[20])) end
  delay = scaled(base_delay())
  local pauses_only = ARGV[16] == '1'
  local due = math.max(now, s.pu or 0, since + lease)
  if pauses_only then
    local last = math.max(s.ls or 0, s.lu or 0)
    if last > 0 and (s.st or 0) > 0 and ARGV[17] ~= '1' then due = math.max(due, last + scaled(s.ln or 0)) end
  elseif not (ARGV[17] == '1' and (s.n or 0) == tonumber(ARGV[18])) then
    if s.ls then due = math.max(due, s.ls + delay) end
    if s.le and max_in_flight == 1 then due = math.max(due, s.le + delay) end
  end
  if due > now then
    wait = due - now
  elseif not pauses_only and in_flight >= max_in_flight then
    -- Who asks again within a delay after the end of the body is told the exact time.
    wait = math.min(math.max(math.floor(delay / 2), 25000), 1000000, math.max(first_end - now, 1000))
  else
    granted = true
    if ARGV[22] ~= '1' then
      s.n = (s.n or 0) + 1
      count_start()
    end
    if pauses_only then
      s.lu = math.max(s.lu or 0, now)
    else
      redis.call('ZADD', KEYS[3], string.format('%.0f', now + lease), ARGV[15])
      in_flight = in_flight + 1
      -- With several permits no end tells when the next one may start: count from the latest start that this allows.
      s.ls = math.max(s.ls or 0, now + (max_in_flight > 1 and tonumber(ARGV[21]) or 0))
    end
  end
else
  local update = ARGV[16]
  if update == 'renew' then
    in_flight = in_flight + redis.call('ZADD', KEYS[3], string.format('%.0f', now + lease), ARGV[15])
  elseif update == 'end' or update == 'unused' then
    in_flight = in_flight - redis.call('ZREM', KEYS[3], ARGV[15])
    if update == 'end' then s.le = math.max(s.le or 0, now) end
  end
  if ARGV[17] ~= '' then
    record_response(ARGV[17], tonumber(ARGV[18]), ARGV[19] == '1', ARGV[20] == '1', tonumber(ARGV[21]),
      now - tonumber(ARGV[22]), tonumber(ARGV[23]))
  end
  delay = scaled(base_delay())
end

-- The last call was no later than the last start or end; the last start is the only one of its second.
if s.seen <= math.max(max_in_flight == 1 and s.ls or 0, s.le or 0) then s.seen = nil end
if s.ls and not s.sec then
  s.sec = 0
elseif s.ls and s.sec == s.ls and s.sc == 1 and not s.se then
  s.sec, s.sc = nil, nil
end

-- Only what changed is written, and all that belongs to a host expires when no rule depends on it any more.
local changed, gone = {}, {}
for name, value in pairs(s) do
  if before[name] ~= value then
    changed[#changed + 1] = name
    if name == 'rt' then
      value = string.format('%.17g', value)
    elseif name ~= 'cd' then
      value = string.format('%.0f', value)
    end
    changed[#changed + 1] = value
  end
end
for name in pairs(before) do
  if s[name] == nil then gone[#gone + 1] = name end
end
if #changed > 0 then redis.call('HSET', KEYS[2], unpack(changed)) end
if #gone > 0 then redis.call('HDEL', KEYS[2], unpack(gone)) end
local kept = LATENCY_KEPT
if (s.st or 0) > 0 or (s.fl or 0) > 0 or (s.rs or 0) > 0 then kept = DAY end
for _, entry in ipairs(crawl_delays()) do
  kept = math.max(kept, entry[3] + math.max(entry[2], HOUR) - now)
end
local owed = math.max(now, (s.ls or 0) + delay, (s.lu or 0) + delay, (s.le or 0) + delay, s.pu or 0, now + lease) - now
-- A full server refuses a script at its first write that needs memory: what needs none comes last.
if renew_mark then redis.call('PEXPIRE', KEYS[1], MARK_KEPT / 1000) end
redis.call('PEXPIRE', KEYS[2], string.format('%.0f', math.ceil((owed + kept) / 1000)))
if in_flight > 0 then
  redis.call('PEXPIRE', KEYS[3], string.format('%.0f', math.ceil(2 * lease / 1000)))
end

-- Numbers become integers on their way out.
return {
  granted and 1 or 0,
  math.ceil(wait),
  math.max((s.pu or 0) - now, 0),
  math.ceil(delay),
  s.ls and math.max(now - s.ls, 0) or -1,
  s.n or 0,
  s.st or 0,
}
