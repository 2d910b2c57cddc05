-- Tables, closures, strings and floating point: lua bodies.lua ROUNDS.
local rounds = tonumber(arg[1])
local state = 1
local function number(limit)
  state = (state * 1103515245 + 12345) % 2147483648
  return (state >> 8) % limit
end

local Body = {}
Body.__index = Body
function Body.new() return setmetatable({x = number(100), y = number(100), vx = 0, vy = 0, mass = 1 + number(9)}, Body) end
function Body:attract(other)
  local dx, dy = other.x - self.x, other.y - self.y
  local force = other.mass / (dx * dx + dy * dy + 1)
  self.vx, self.vy = self.vx + dx * force, self.vy + dy * force
end
function Body:move(step) self.x, self.y = self.x + self.vx * step, self.y + self.vy * step end

local function queens(n, row, columns, left, right)
  if row > n then return 1 end
  local found = 0
  for column = 1, n do
    if not (columns[column] or left[row + column] or right[row - column]) then
      columns[column], left[row + column], right[row - column] = true, true, true
      found = found + queens(n, row + 1, columns, left, right)
      columns[column], left[row + column], right[row - column] = nil, nil, nil
    end
  end
  return found
end

local total, names = 0, {}
for round = 1, rounds do
  local bodies = {}
  for i = 1, 40 do bodies[i] = Body.new() end
  for step = 1, 10 do
    for i, a in ipairs(bodies) do
      for j, b in ipairs(bodies) do if i ~= j then a:attract(b) end end
    end
    for _, body in ipairs(bodies) do body:move(0.01) end
  end
  table.sort(bodies, function(a, b) return a.x < b.x end)
  total = total + bodies[1].y + queens(6, 1, {}, {}, {})
  local parts = {}
  for i = 1, 100 do parts[i] = string.format("%d:%s", number(1000), string.rep("ab", number(4))) end
  for key, text in table.concat(parts, ","):gmatch("(%d+):(%a*)") do names[key] = (names[key] or 0) + #text end
end
local keys = 0
for _ in pairs(names) do keys = keys + 1 end
print(string.format("%.6f %d", total, keys))
