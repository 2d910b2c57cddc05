-- Tables, indexes, joins, groups, windows, LIKE; everything in memory. Needs a table `size` that says how many orders.
create table items(id integer primary key, name text, price integer, weight real, label text);
.mode csv
.import records.csv items
create table orders(id integer primary key, item integer, day integer, pieces integer);
with recursive numbers(n, state) as (select 1, 12345 union all select n + 1, (state * 1103515245 + 12345) % 2147483648 from numbers where n < (select n from size))
insert into orders select n, (state >> 8) % 60000, (state >> 4) % 365, (state >> 12) % 9 + 1 from numbers;
create index orders_by_item on orders(item);
create index orders_by_day on orders(day, pieces);
select name, count(*), sum(pieces * price) as turnover from orders join items on items.id = orders.item group by name order by turnover desc limit 10;
select day, sum(pieces), avg(weight) from orders join items on items.id = item where label like '%a%b%' group by day order by 2 desc limit 5;
select count(*), sum(running) from (select sum(pieces) over (partition by item order by day) as running from orders);
update items set price = price + (select coalesce(sum(pieces), 0) from orders where item = items.id) where id % 3 = 0;
delete from orders where item in (select id from items where name < 'h');
select label, max(length(name || label)), group_concat(distinct substr(name, 1, 1)) from items group by label order by 2 desc, 1 limit 5;
select count(*) from orders a join orders b on a.item = b.item and a.day < b.day;
