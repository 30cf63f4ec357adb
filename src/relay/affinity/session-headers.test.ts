import { expect, test } from 'vitest'
import { SESSION_HEADERS } from './session.ts'

test('headers that name a session have the order of the contract', () => {
  expect(SESSION_HEADERS).toEqual([
    'x-session-id',
    'x-claude-code-session-id',
    'session_id',
    'session-id',
    'x-qwen-code-session-id',
    'x-session-affinity',
    'x-bf-session-id',
  ])
})
