import { expect, test } from 'vitest'
import { isPublicAddress } from './ssrf-guard.ts'

test.each([
  ['8.8.8.8', true],
  ['2a00:1450:4001:82f::200e', true],
  ['2a00:1450::5efe:8.8.8.8', true],
  ['10.0.0.1', false],
  ['2a00:1450::5efe:10.0.0.1', false],
  ['2a00:1450::200:5efe:169.254.169.254', false],
  ['2001:0:a00:1::1', false],
  ['64:ff9b::10.0.0.1', false],
  ['2002:a00:1::', false],
])('an address is public only if the address that it embeds is public too: %s', (address, isPublic) => {
  expect(isPublicAddress(address)).toBe(isPublic)
})
