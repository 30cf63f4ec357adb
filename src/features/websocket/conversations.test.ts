import { expect, test } from 'vitest'
import { RequestMemory } from '../../limits/request-memory.ts'
import { Conversations, type ConversationState, type SocketConversations } from './conversations.ts'

const MIB = 1_048_576

/** Room for everything, so that only the bounds of conversations count. */
const bounds = (): Conversations =>
  new Conversations(
    new RequestMemory(
      () => 1_024 * MIB,
      () => 0,
    ),
  )

const owner = (client: number) => ({ client, key: client })

// Pages that are never written take no memory of the machine.
const state = (id: string, bytes: number): ConversationState => ({
  id,
  items: Buffer.alloc(bytes),
  after: undefined,
  instructions: undefined,
})

const known = (socket: SocketConversations, ids: readonly string[]): string[] =>
  ids.filter((id) => socket.find(id) !== undefined)

test('a socket remembers the last answer of each lane', () => {
  const socket = bounds().ofSocket(owner(1), MIB)
  socket.remember('a', state('a1', 10))
  socket.remember('b', state('b1', 10))
  socket.remember('a', state('a2', 10))
  expect(known(socket, ['a1', 'a2', 'b1'])).toEqual(['a2', 'b1'])
})

test('above the maximum of a socket the conversation that was unused for longest is forgotten', () => {
  const socket = bounds().ofSocket(owner(1), 100_000)
  for (const id of ['a', 'b', 'c']) socket.remember(id, state(id, 30_000))
  socket.find('a')
  socket.remember('d', state('d', 30_000))
  expect(known(socket, ['a', 'b', 'c', 'd'])).toEqual(['a', 'c', 'd'])
})

test('a conversation that is larger than a socket may remember is not remembered, and takes the place of the earlier one of its lane', () => {
  const socket = bounds().ofSocket(owner(1), 10_000)
  socket.remember('a', state('a', 100))
  socket.remember('a', state('large', 10_000))
  expect(known(socket, ['a', 'large'])).toEqual([])
})

test('the sockets of one user remember at most 64 MiB, and leave those of others alone', () => {
  const all = bounds()
  const sockets = [1, 1, 2].map((user) => all.ofSocket(owner(user), 40 * MIB))
  const [first, second, other] = sockets as [SocketConversations, SocketConversations, SocketConversations]
  other.remember('x', state('x', 33 * MIB))
  first.remember('a', state('a', 33 * MIB))
  second.remember('b', state('b', 33 * MIB))
  expect(first.find('a')).toBeUndefined()
  expect(second.find('b')).toBeDefined()
  expect(other.find('x')).toBeDefined()
})

test('all sockets of a node remember at most 512 MiB', () => {
  const all = bounds()
  const users = Array.from({ length: 11 }, (_, user) => all.ofSocket(owner(user + 1), 60 * MIB))
  for (const [at, socket] of users.entries()) socket.remember('a', state(`of ${at}`, 50 * MIB))
  const left = users.flatMap((socket, at) => known(socket, [`of ${at}`]))
  expect(left).toEqual(Array.from({ length: 10 }, (_, at) => `of ${at + 1}`))
})

test('a socket that is closed makes room for others of its user', () => {
  const all = bounds()
  const [first, second] = [all.ofSocket(owner(1), 64 * MIB), all.ofSocket(owner(1), 64 * MIB)]
  first.remember('a', state('a', 60 * MIB))
  first.close()
  second.remember('b', state('b', 60 * MIB))
  expect(first.find('a')).toBeUndefined()
  expect(second.find('b')).toBeDefined()
})
