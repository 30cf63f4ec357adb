import { expect, test } from 'vitest'
import { pathPattern } from './path-pattern.ts'

test.each([
  ['/api/token/:id/key', '/api/token/7/key', { id: '7' }],
  ['/api/token/:id/key', '/api/token/7%2F8/key', { id: '7%2F8' }],
  ['/api/token/:id/key', '/api/token//key', undefined],
  ['/api/token/:id/key', '/api/token/7/8/key', undefined],
  ['/api/token/:id/key', '/api/token/7/key/', undefined],
  ['/api/token/:id/key', 'x/api/token/7/key', undefined],
  ['/v1/models/:id*', '/v1/models/m', { id: 'm' }],
  ['/v1/models/:id*', '/v1/models/a/b%2Fc/', { id: 'a/b%2Fc/' }],
  ['/v1/models/:id*', '/v1/models/', undefined],
  ['/v1/models/:id*', '/v1/models', undefined],
  ['/a.b/:x/:y*', '/a.b/1/2/3', { x: '1', y: '2/3' }],
  ['/a.b/:x/:y*', '/a-b/1/2/3', undefined],
  ['/m/:id*:run', '/m/a/b:free:run', { id: 'a/b:free' }],
  ['/m/:id*:run', '/m/a%3Arun', { id: 'a' }],
  ['/m/:id*:run', '/m/a%3arun', { id: 'a' }],
  ['/m/:id*:run', '/m/a:runs', undefined],
  ['/m/:id*:run', '/m/:run', undefined],
])('the pattern %s reads %s as %j', (path, given, params) => {
  expect(pathPattern(path)(given)).toEqual(params)
})
