import { expect, test } from 'vitest'
import { readBaseUrl } from './base-url.ts'

test.each([
  ['https://api.example.com/v1', 'https://api.example.com/v1'],
  ['https://api.example.com/v1/', 'https://api.example.com/v1'],
  ['https://api.example.com/v1//', 'https://api.example.com/v1'],
  ['https://api.example.com', 'https://api.example.com'],
  ['HTTP://API.Example.com:8080/V1/', 'http://api.example.com:8080/V1'],
  ['http://[::1]:4000/v1beta/openai', 'http://[::1]:4000/v1beta/openai'],
])('the base URL %s is read as %s', (text, url) => {
  expect(readBaseUrl(text)).toEqual({ url })
})

test.each([
  '',
  'api.example.com',
  '//api.example.com',
  'file:///v1',
  'https:/api.example.com',
  'https://',
  'https://a b',
  'https:\\\\a',
])('an invalid base URL is refused: "%s"', (text) => expect(readBaseUrl(text)).toHaveProperty('expected'))
