import { afterAll, beforeAll, expect, test } from 'vitest'
import { databaseOf } from '../fixtures/database.ts'
import { type DemoFixture, startDemoFixture } from '../fixtures/demo-fixture.ts'
import { eventually, openSocket, textOf } from '../fixtures/web-socket-client.ts'

let fixture: DemoFixture
beforeAll(async () => {
  fixture = await startDemoFixture()
})
afterAll(() => fixture?.close())

const idOf = (event: object | undefined) => (event as { response: { id: string } }).response.id
const rowOf = (id: string) => databaseOf(fixture.gateway.dataDir).usageOf(id)

test('the demo continues a conversation over a socket of its simulated provider, without storing it', async () => {
  const client = await openSocket(fixture.gateway.url, 'ann')
  const first = await client.turn({
    model: 'demo-responses',
    input: 'Remember the word "plum".',
    store: false,
  })
  const second = await client.turn({
    model: 'demo-responses',
    input: 'Which word?',
    store: false,
    previous_response_id: idOf(first.at(-1)),
  })
  expect(textOf(second)).not.toBe('')
  await eventually(() => {
    const [one, two] = [1, 2].map((turn) => rowOf(`${client.id}.${turn}`))
    expect(two).toMatchObject({ reason: 'complete', transport: 'websocket' })
    // The prompt of the second turn contains the first one.
    expect(Number(two?.input_tokens)).toBeGreaterThan(Number(one?.input_tokens))
  })
  client.socket.close(1000)
})

test('a response of the demo can be steered', async () => {
  const client = await openSocket(fixture.gateway.url, 'ann')
  client.send({ type: 'response.create', model: 'demo-responses', input: 'Tell me a long story.' })
  const started = await client.next(({ type }) => type === 'response.created')
  client.send({ type: 'response.steer', previous_response_id: idOf(started), input: 'Rather a poem.' })
  await client.next(({ type }) => type === 'response.steer.accepted')
  const steered = await client.next(({ type }) => type === 'response.incomplete')
  expect(steered).toMatchObject({ response: { incomplete_details: { reason: 'steered' } } })
  await client.next(({ type }) => type === 'response.completed')
  await eventually(() => expect(rowOf(`${client.id}.2`)).toMatchObject({ reason: 'complete' }))
  client.socket.close(1000)
})

test('the demo prepares state without output over the socket', async () => {
  const client = await openSocket(fixture.gateway.url, 'ann')
  const events = await client.turn({ model: 'demo-responses', input: 'Wait for me.', generate: false })
  expect(events.at(-1)).toMatchObject({ type: 'response.completed', response: { output: [] } })
  await eventually(() => expect(rowOf(`${client.id}.1`)).toMatchObject({ output_tokens: 0 }))
  client.socket.close(1000)
})
