import { expect, test } from 'vitest'
import { pathPattern, redactedPath } from './paths.ts'

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
])('the path pattern %s of an endpoint reads the path %s to the parameters %j', (path, given, params) => {
  expect(pathPattern(path)(given)).toEqual(params)
})

const KEY = 'A1b2C3d4E5f6G7h8A1b2C3d4E5f6G7h8A1b2C3d4E5f6G7h8'

test.each([
  ['/v1/chat/completions', '/v1/chat/completions'],
  ['/v1/models/org/part:free%20x', '/v1/models/org/part:free%20x'],
  ['/sk-secret/v1/messages', '/sk-…/v1/messages'],
  ['/v1/SK-secret-and-more', '/v1/sk-…'],
  [`/v1/messages/${KEY}`, '/v1/messages/…'],
  [`/v1/messages/sk%2D${KEY}`, '/v1/messages/sk-…'],
  ['/v1/%73k-secret', '/v1/sk-…'],
  ['/v1/%53%4B%2dsecret%2Fand%2Fmore', '/v1/sk-…'],
  ['/v1/%2573%256B%252Dsecret', '/v1/sk-…'],
  ['/v1/%2525252525252525252573k-secret', '/v1/sk-…'],
  ['/v1/%%37%33k-secret', '/v1/sk-…'],
  [`/v1/models/%41${KEY.slice(1)}`, '/v1/models/…'],
  [`/v1/models/${KEY.slice(0, 20)}%${KEY.charCodeAt(20).toString(16)}${KEY.slice(21)}`, '/v1/models/…'],
  ['/v1/models/a%2Fb%3Ac%20d', '/v1/models/a%2Fb%3Ac%20d'],
  ['/<script>"\'&\u0000\u00e4', '/?script??????'],
])('the path %j is logged as %j', (path, shown) => {
  expect(redactedPath(path)).toBe(shown)
})

test.each([
  [`/v1/models/${KEY.slice(0, 31)}`, `/v1/models/${KEY.slice(0, 31)}`],
  [`/v1/models/${KEY.slice(0, 32)}`, '/v1/models/…'],
  ['/v1beta/models/gemini-2.5-flash:generateContent', '/v1beta/models/gemini-2.5-flash:generateContent'],
  ['/v1beta/models/ask-me:generateContent', '/v1beta/models/ask-…'],
  [`/${'x'.repeat(31)}/${'y/'.repeat(83)}z`, `/${'x'.repeat(31)}/${'y/'.repeat(83)}z`],
  [`/${'x'.repeat(31)}/${'y/'.repeat(84)}z`, `/${'x'.repeat(31)}/${'y/'.repeat(83)}y`],
])('the usual path %s is logged as %s', (path, shown) => {
  expect(redactedPath(path)).toBe(shown)
})

test('the logged path of a request is shortened if it is long, and has no part of a key at the cut', () => {
  expect(redactedPath(`/${'x-'.repeat(5000)}`)).toHaveLength(200)
  expect(redactedPath(`/${'x-'.repeat(90)}${KEY}`)).not.toContain('A1b2')
})

test('the path of a request with escapes within escapes is read quickly, and no key in it is logged', () => {
  const letter = (depth: number): string =>
    depth === 0 ? 's' : letter(depth - 1).replaceAll(/./g, (each) => `%${each.charCodeAt(0).toString(16)}`)
  for (let depth = 1; depth < 9; depth++)
    expect(redactedPath(`/${letter(depth)}k-secret`)).not.toContain('secret')
  expect(redactedPath(`/%${'25'.repeat(8_000)}73k-secret`)).toBe('/sk-…')
})
