import { expect, test } from 'vitest'
import { planChannels } from './plan-channels.ts'

const ACCOUNTS = ['a', 'b'].map((name) => ({ client_email: `${name}@example.com`, private_key: 'x' }))

test.each([
  ['A\nA\nREVOKED\nC', { 2: 2 }, ['A', 'C'], 'left out 1 of 3 keys, which are disabled there'],
  ['A\n\nREVOKED\nC', { 2: 2 }, ['A', 'C'], 'left out 1 of 3 keys, which are disabled there'],
  [
    '\n\nREVOKED\n \r\nREVOKED-TOO\nC\n',
    { 0: 3, 2: 2 },
    ['C'],
    'left out 2 of 3 keys, which are disabled there',
  ],
  [' \nREVOKED\nC', { 1: 2 }, ['C'], 'left out 1 of 2 keys, which are disabled there'],
  ['A\nB\nA', { 2: 2 }, ['A', 'B'], undefined],
])(
  'the disabled keys of a new-api channel are counted by the lines of its key: %j %j',
  (key, states, kept, note) => {
    const channel = { id: 1, type: 1, name: 'openai', status: 1, models: 'gpt-4o', group: 'default', key }
    expect(plan({ ...channel, channel_info: JSON.stringify({ multi_key_status_list: states }) })).toEqual([
      kept,
      note === undefined ? [] : [note],
    ])
  },
)

test('the disabled service accounts of a new-api channel are counted by the entries of its list', () => {
  const channel = { id: 1, type: 41, name: 'vertex', status: 1, models: 'gemini-2.5-pro', group: 'default' }
  const key = JSON.stringify(ACCOUNTS, undefined, 2)
  const channel_info = JSON.stringify({ multi_key_status_list: { 0: 2 } })
  expect(plan({ ...channel, key, other: 'us-east5', channel_info })).toEqual([
    [JSON.stringify(ACCOUNTS[1])],
    ['left out 1 of 2 keys, which are disabled there'],
  ])
})

/** The keys of the channel that a row becomes, and the notes about it. */
function plan(row: Readonly<Record<string, unknown>>): unknown {
  const { channels, left } = planChannels({
    family: 'new-api',
    users: [],
    tokens: [],
    channels: [row],
    options: new Map(),
    leftTables: [],
  })
  expect(left).toEqual([])
  return [channels[0]?.channel.keys, channels[0]?.line.notes]
}
