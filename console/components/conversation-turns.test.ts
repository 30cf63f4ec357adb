import { expect, test } from 'vitest'
import type { ConversationTurn } from '../api/content.ts'
import { laidOut, turnsSincePreviousCall } from './conversation-turns.ts'

const turn = (role: ConversationTurn['role'], ...texts: readonly string[]): ConversationTurn => ({
  role,
  parts: texts.map((text) => ({ kind: 'text', text })),
})
const called = (input: string): ConversationTurn => ({
  role: 'assistant',
  parts: [{ kind: 'tool-call', name: 'look', input }],
})

test('the thread of a session shows for each call only the messages that are new', () => {
  const [a, b, c, d] = [turn('user', 'a'), turn('assistant', 'b'), turn('user', 'c'), turn('assistant', 'd')]
  expect(turnsSincePreviousCall([a, b, c, d], [a, b])).toEqual([c, d])
  expect(turnsSincePreviousCall([a, d], [a, b])).toEqual([d])
  expect(turnsSincePreviousCall([a, b], [a, b])).toEqual([])
  expect(turnsSincePreviousCall([c], [])).toEqual([c])
})

test('the thread of a session shows only the new message of a turn that goes on after a call without an answer', () => {
  expect(turnsSincePreviousCall([turn('user', 'a', 'b')], [turn('user', 'a')])).toEqual([turn('user', 'b')])
})

test('the same arguments of a tool are not shown again because their JSON has other spaces', () => {
  expect(turnsSincePreviousCall([called('{"at":1}')], [called('{\n  "at": 1\n}')])).toEqual([])
  expect(turnsSincePreviousCall([called('{"at":2}')], [called('{"at":1}')])).toEqual([called('{"at":2}')])
})

test('the console shows JSON in lines, and any other text as it is', () => {
  expect(laidOut('{"at":1}')).toBe('{\n  "at": 1\n}')
  expect(laidOut('*** Begin Patch')).toBe('*** Begin Patch')
})
