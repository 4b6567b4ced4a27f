"""The Lua scripts of `RedisStore`. Redis runs a script atomically.

Keys: the hash of the run, the list of its lines, the hash of its blobs, the sorted set of all runs.
The sorted sets of users are named by an argument. Numbers are stored as text, so that they are read exactly as written.
"""

VERSION = 1
"""The version of the layout. Every released version must stay readable; see `tests/journal/versions`."""

# Arguments: prefix, version of the layout, run id, info, user, created, number of records; then the line of each
# record, digest and data of each blob.
CREATE = """
if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('SETNX', ARGV[1] .. 'version', ARGV[2])
redis.call('HSET', KEYS[1], 'info', ARGV[4], 'user', ARGV[5], 'epoch', '0', 'owner', '', 'claimed', '0', 'until', '0')
redis.call('ZADD', KEYS[4], ARGV[6], ARGV[3])
redis.call('ZADD', ARGV[1] .. 'user:' .. ARGV[5], ARGV[6], ARGV[3])
local first = 8 + ARGV[7]
for at = 8, first - 1 do redis.call('RPUSH', KEYS[2], ARGV[at]) end
for at = first, #ARGV, 2 do redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 1]) end
return 1
"""

# Arguments: owner, seconds, over (or empty). Reply: whether the run exists, epoch, owner, until.
# The same rules as in `leases.next_lease`.
CLAIM = """
local held = redis.call('HMGET', KEYS[1], 'epoch', 'owner', 'claimed', 'until')
if not held[1] then return {0} end
local clock = redis.call('TIME')
local now = clock[1] + clock[2] / 1000000
local alive = tonumber(held[3]) <= now and now < tonumber(held[4])
local epoch = held[1]
if held[2] ~= ARGV[1] or held[4] == '0' then
    if epoch ~= ARGV[3] and (ARGV[3] ~= '' or alive) then return {1, epoch, held[2], held[4]} end
    epoch = string.format('%.0f', epoch + 1)
end
local ends = string.format('%.6f', now + ARGV[2])
redis.call('HSET', KEYS[1], 'epoch', epoch, 'owner', ARGV[1], 'claimed', string.format('%.6f', now), 'until', ends)
return {1, epoch, ARGV[1], ends}
"""

# Argument: epoch.
RELEASE = """
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch then return 0 end
if epoch == ARGV[1] then redis.call('HSET', KEYS[1], 'until', '0') end
return 1
"""

# Arguments: epoch, number of records, number of blobs; then number and line of each record, digest and data of each
# blob; then, if the info changes: prefix, run id, info, user, created. Reply: 0 done, 1 no such run, 2 refused.
APPEND = """
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if not epoch then return 1 end
if epoch ~= ARGV[1] then return 2 end
local last = redis.call('LLEN', KEYS[2])
local next, new, at = last + 1, {}, 4
for _ = 1, ARGV[2] do
    local seq, line = tonumber(ARGV[at]), ARGV[at + 1]
    if seq == next then
        new[seq] = line
        next = next + 1
    elseif seq < 1 or seq > next or (new[seq] or redis.call('LINDEX', KEYS[2], seq - 1)) ~= line then
        return 2
    end
    at = at + 2
end
for seq = last + 1, next - 1 do redis.call('RPUSH', KEYS[2], new[seq]) end
for _ = 1, ARGV[3] do
    redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 1])
    at = at + 2
end
if ARGV[at] then
    local prefix, name, info, user, created = unpack(ARGV, at, at + 4)
    redis.call('ZREM', prefix .. 'user:' .. redis.call('HGET', KEYS[1], 'user'), name)
    redis.call('HSET', KEYS[1], 'info', info, 'user', user)
    redis.call('ZADD', KEYS[4], created, name)
    redis.call('ZADD', prefix .. 'user:' .. user, created, name)
end
return 0
"""

# Arguments: number of records to skip, maximum number to return. Reply: whether the run exists, number of records,
# and all of them as one text, which the client reads fast.
LOAD = """
if redis.call('EXISTS', KEYS[1]) == 0 then return {0, 0, ''} end
local lines = redis.call('LRANGE', KEYS[2], ARGV[1], ARGV[1] + ARGV[2] - 1)
return {1, #lines, table.concat(lines, '\\n')}
"""

# Arguments: prefix, run id.
DELETE = """
local user = redis.call('HGET', KEYS[1], 'user')
if not user then return 0 end
redis.call('ZREM', ARGV[1] .. 'user:' .. user, ARGV[2])
redis.call('ZREM', KEYS[4], ARGV[2])
redis.call('UNLINK', KEYS[1], KEYS[2], KEYS[3])
return 1
"""

# Keys: the hashes of runs.
INFOS = """
local infos = {}
for at, key in ipairs(KEYS) do infos[at] = redis.call('HGET', key, 'info') end
return infos
"""
