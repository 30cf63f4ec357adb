import { expect, test } from 'vitest'
import { scanObject } from '../../json/json-scan.ts'
import { hasOnlyTexts } from './request.ts'

const plain = (contents: string): boolean => hasOnlyTexts(scanObject(Buffer.from(`{"contents":${contents}}`)))

test.each([
  '[]',
  '[{"parts":[]}]',
  '[{"parts":[{"text":"Hi"}]}]',
  '[{"role":"user","parts":[{"text":"Hi"},{"text":"inlineData"}]},{"parts":[{"text":"functionCall"}],"role":"model"}]',
])('the contents %s are only texts', (contents) => {
  expect(plain(contents)).toBe(true)
})

test.each([
  '[{"parts":[{"text":"Hi"},{"inlineData":{}}]}]',
  '[{"parts":[{"text":"Hi"}]},{"parts":[{"functionCall":{"name":"f"}}]}]',
  '[{"parts":[{"text":"Hi","thoughtSignature":"c2ln"}]}]',
  '[{"parts":[{"text":"Hi","thought":true}]}]',
  String.raw`[{"parts":[{"inl\u0069neData":{}}]}]`,
  '[{"parts":["Hi"]}]',
  '[{"parts":[{}]}]',
  '[{"parts":{"text":"Hi"}}]',
  '[{"role":"user"}]',
  '["Hi"]',
  '{"parts":[{"text":"Hi"}]}',
  'null',
])('the contents %s may have more than texts', (contents) => {
  expect(plain(contents)).toBe(false)
})
