import { expect, test } from 'vitest'
import type { Endpoint } from './endpoint.ts'
import { JSON_ROUTES } from './json-routes.ts'
import { RAW_ROUTES } from './raw-routes.ts'
import { RouteTable } from './route-table.ts'

const get = (path: string): Endpoint => ({ method: 'GET', path, area: 'relay' }) as Endpoint

function pathFound(routes: readonly Endpoint[], path: string): string | undefined {
  const found = new RouteTable(routes).find('GET', path)
  return found && 'endpoint' in found ? found.endpoint.path : undefined
}

test.each([
  ['/m/a/limits', '/m/:id*/limits'],
  ['/m/a/b/limits', '/m/:id*/limits'],
  ['/m/a/b', '/m/:id*'],
  ['/m/limits', '/m/limits'],
])('the endpoint of %s is %s in any order of the list', (path, expected) => {
  const routes = ['/m/:id*', '/m/:id*/limits', '/m/limits'].map(get)
  expect(pathFound(routes, path)).toBe(expected)
  expect(pathFound(routes.toReversed(), path)).toBe(expected)
})

test.each([
  ['JSON', JSON_ROUTES],
  ['other', RAW_ROUTES],
] as const)('no endpoint is hidden by another one: %s', (_, routes: readonly Endpoint[]) => {
  const table = new RouteTable(routes)
  const found = routes.map(({ method, path }) => table.find(method, path.replace(/(?<=\/):\w+\*?/g, 'a')))
  expect(found.map((one) => (one && 'endpoint' in one ? one.endpoint : one))).toEqual(routes)
})
