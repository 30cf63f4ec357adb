import { expect, test } from 'vitest'
import { channelFaultOf } from './channel-fault.ts'

test.each([
  ['no answer: connection refused', 'address'],
  ['no model server answered', 'address'],
  ['the upstream answered 401: wrong key', 'key'],
  ['the upstream answered 403', 'key'],
  ['the upstream answered 404: no such model', 'model'],
  ['the upstream answered 429', 'upstream'],
  ['the upstream answered 503', 'upstream'],
])('the message "%s" of a failed test points to the %s', (message, fault) => {
  expect(channelFaultOf(message)).toBe(fault)
})
