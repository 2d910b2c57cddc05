create table customer(id integer primary key, name text, region integer);
create table product(id integer primary key, name text, price real, kind integer);
create table orders(id integer primary key, customer integer, day integer);
create table line(id integer primary key, orders integer, product integer, amount integer);
begin;
insert into customer
  with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000)
  select i, 'customer ' || (i * 7919 % 20011), i * 31 % 17 from n;
insert into product
  with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000)
  select i, 'product ' || (i * 104729 % 5003), (i * 37 % 1000) / 10.0, i * 13 % 41 from n;
insert into orders
  with recursive n(i) as (select 1 union all select i + 1 from n where i < 120000)
  select i, i * 7919 % 20000 + 1, i * 17 % 365 from n;
insert into line
  with recursive n(i) as (select 1 union all select i + 1 from n where i < 400000)
  select i, i * 104729 % 120000 + 1, i * 7919 % 5000 + 1, i % 9 + 1 from n;
commit;
create index line_orders on line(orders);
create index line_product on line(product);
create index orders_customer on orders(customer, day);
create index customer_name on customer(name);
select region, count(*), round(sum(amount * price), 2) from line
  join orders on orders.id = line.orders join customer on customer.id = orders.customer
  join product on product.id = line.product group by region order by region;
select kind, day / 30, sum(amount) from line join product on product.id = line.product
  join orders on orders.id = line.orders where name like '%7%' group by 1, 2 order by 3 desc limit 10;
select count(distinct customer) from orders where day between 100 and 200
  and exists (select 1 from line where line.orders = orders.id and amount > 6);
select name, (select max(day) from orders where customer = customer.id) from customer order by name limit 20;
update product set price = price * 1.05 where kind in (select kind from product group by kind having count(*) > 100);
delete from line where amount = 1 and orders % 3 = 0;
select count(*), round(sum(price), 1), group_concat(distinct kind % 5) from product where name glob '*[3-5]';
with recursive walk(customer, depth) as (
  select 1, 0 union select (customer * 31 + 7) % 20000 + 1, depth + 1 from walk where depth < 60000)
select count(distinct customer), max(depth) from walk;
