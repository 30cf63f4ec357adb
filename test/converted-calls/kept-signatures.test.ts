import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { channel, type Configuration, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import type { ScriptedUpstream } from '../fixtures/scripted-upstream.ts'
import { responsesWire } from '../fixtures/signing-wires.ts'

const SIGNATURE = 'c2lnbmF0dXJlIG9mIHRoZSB0aG91Z2h0'
const THOUGHT = 'I had better look.'
const down: Behaviour = { kind: 'status', status: 500, body: '{}' }

function configure(upstream: ScriptedUpstream, options: Record<string, unknown> = {}): Configuration {
  return {
    options,
    models: priced(['claude', 'gpt', 'either']),
    channels: [
      channel('claude', upstream.baseUrl('claude'), { protocol: 'messages' }),
      channel('gpt', upstream.baseUrl('gpt'), { protocol: 'responses', keys: ['key-one', 'key-two'] }),
      channel('first', upstream.baseUrl('first'), { protocol: 'messages', models: ['either'] }),
      channel('second', upstream.baseUrl('second'), { protocol: 'messages', models: ['either'] }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann'), token('other')]), user(3, 'bob', [token('bob')])],
  }
}

let fixture: Fixture
beforeAll(async () => {
  fixture = await startFixture((upstream) => configure(upstream))
})
afterAll(() => fixture?.close())

const asked = { role: 'user', content: 'How is it there?' }

/** A history in which the model called `id`, in the form of chat clients. */
function history(id: string): object[] {
  const call = { id, type: 'function', function: { name: 'look', arguments: '{}' } }
  return [
    asked,
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: id, content: 'sunny' },
  ]
}

async function say(model: string, messages: object[], key = 'ann'): Promise<number> {
  const fields = { model, messages, reasoning_effort: 'low', max_tokens: 3000 }
  return (await fixture.chat(key, fields)).status
}

/** Makes a channel of messages answer with a signed thought before a call. */
async function signedCall(lane: string, id: string, model = lane): Promise<void> {
  const blocks = [
    { thinking: THOUGHT, signature: SIGNATURE },
    { id, name: 'look', input: '{}' },
  ]
  fixture.upstream.script(lane, wholeMessage(blocks))
  expect(await say(model, [asked])).toBe(200)
}

/**
 * The content of the assistant's turn that a channel of messages got last, and whether thinking was
 * requested.
 */
function sentTurn(lane: string): { readonly kinds: string[]; readonly thinking: unknown } {
  const body = JSON.parse(fixture.upstream.received(lane).at(-1)?.text ?? '{}')
  return {
    kinds: body.messages[1].content.map(({ type }: { type: string }) => type),
    thinking: body.thinking,
  }
}

const WITH = { kinds: ['thinking', 'tool_use'], thinking: { type: 'enabled', budget_tokens: 1280 } }
const WITHOUT = { kinds: ['tool_use'], thinking: undefined }

describe('a kept signature', () => {
  test('a stored thinking signature is restored for any key of its user, and for no other user', async () => {
    await signedCall('claude', 'toolu_user')
    fixture.upstream.script('claude', wholeMessage([{ text: 'Sunny.' }]))
    expect(await say('claude', history('toolu_user'), 'other')).toBe(200)
    expect(sentTurn('claude')).toEqual(WITH)
    expect(await say('claude', history('toolu_user'), 'bob')).toBe(200)
    expect(sentTurn('claude')).toEqual(WITHOUT)
  })

  test("a call with a stored thinking signature goes to the signature's channel; at another channel, thinking is turned off", async () => {
    for (let round = 0; round < 6; round++) {
      const id = `toolu_round_${round}`
      const blocks = [
        { thinking: THOUGHT, signature: SIGNATURE },
        { id, name: 'look', input: '{}' },
      ]
      for (const lane of ['first', 'second']) fixture.upstream.script(lane, wholeMessage(blocks))
      await say('either', [asked])
      const [origin, other] =
        fixture.upstream.received('first').length > 0 ? ['first', 'second'] : ['second', 'first']
      for (const lane of ['first', 'second'])
        fixture.upstream.script(lane, wholeMessage([{ text: 'Sunny.' }]))
      expect(await say('either', history(id))).toBe(200)
      expect(fixture.upstream.received(other)).toEqual([])
      expect(sentTurn(origin)).toEqual(WITH)
    }
    fixture.upstream.script('first', down)
    fixture.upstream.script('second', wholeMessage([{ text: 'Sunny.' }]))
    await signedCallAt('first', 'toolu_moved')
    fixture.upstream.script('first', down)
    fixture.upstream.script('second', wholeMessage([{ text: 'Sunny.' }]))
    expect(await say('either', history('toolu_moved'))).toBe(200)
    expect(sentTurn('second')).toEqual(WITHOUT)
  })

  /** Lets only one of two channels answer. */
  async function signedCallAt(lane: string, id: string): Promise<void> {
    const other = lane === 'first' ? 'second' : 'first'
    fixture.upstream.script(other, down)
    await signedCall(lane, id, 'either')
  }

  test('stored encrypted reasoning is sent with the upstream key that made it, and left out if another key must be used', async () => {
    const parts = [{ thought: THOUGHT, signature: SIGNATURE }, { call: 'call_62136354a1b2c3d4e5f60718' }]
    const answer: Behaviour = { kind: 'whole', body: responsesWire.whole(parts, 'one') }
    const after: Behaviour = { kind: 'whole', body: responsesWire.whole([{ text: 'Sunny.' }], 'two') }
    fixture.upstream.script('gpt', answer)
    expect(await say('gpt', [asked])).toBe(200)
    const made = fixture.upstream.only('gpt').headers.authorization
    const inputs = (): { key: string | undefined; hasReasoning: boolean }[] =>
      fixture.upstream.received('gpt').map(({ headers, text }) => ({
        key: headers.authorization,
        hasReasoning: text.includes(SIGNATURE),
      }))
    fixture.upstream.script('gpt', after)
    for (let round = 0; round < 3; round++)
      expect(await say('gpt', history('call_62136354a1b2c3d4e5f60718'))).toBe(200)
    expect(inputs()).toEqual(Array.from({ length: 3 }, () => ({ key: made, hasReasoning: true })))
    fixture.upstream.decide('gpt', ({ headers }) =>
      headers.authorization === made ? { kind: 'status', status: 401, body: '{}' } : after,
    )
    expect(await say('gpt', history('call_62136354a1b2c3d4e5f60718'))).toBe(200)
    const other = made === 'Bearer key-one' ? 'Bearer key-two' : 'Bearer key-one'
    expect(inputs()).toEqual([
      { key: made, hasReasoning: true },
      { key: other, hasReasoning: false },
    ])
  })

  test("a stored thinking signature of a reply without tool calls is found by the reply's text, in that conversation only", async () => {
    const blocks = [{ thinking: THOUGHT, signature: SIGNATURE }, { text: 'Sunny.' }]
    fixture.upstream.script('claude', wholeMessage(blocks))
    expect(await say('claude', [asked])).toBe(200)
    const more = [
      { role: 'assistant', content: ' Sunny. ' },
      { role: 'user', content: 'And now?' },
    ]
    await say('claude', [asked, ...more])
    expect(sentTurn('claude').kinds).toEqual(['thinking', 'text'])
    await say('claude', [{ role: 'user', content: 'How is it elsewhere?' }, ...more])
    expect(sentTurn('claude').kinds).toEqual(['text'])
  })

  test.each([[false], [true]])(
    'thoughts are restored only in their own conversation if another one has a call with the same id (stream: %s)',
    async (stream) => {
      const asking = (who: string): object => ({ role: 'user', content: `I am ${who}.` })
      const calling = (input: string): object[] => [
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'Bash:0', type: 'function', function: { name: 'Bash', arguments: input } }],
        },
        { role: 'tool', tool_call_id: 'Bash:0', content: 'done' },
      ]
      const answer = stream ? streamedMessage : wholeMessage
      const ask = async (messages: object[]): Promise<unknown> => {
        await fixture.chat('ann', { model: 'claude', messages, reasoning_effort: 'low', stream })
        return JSON.parse(fixture.upstream.received('claude').at(-1)?.text ?? '{}').messages[1]?.content
      }
      const spoken = [
        { who: 'Alice', n: 1 },
        { who: 'Bob', n: 2 },
        { who: 'Bob', n: 3 },
      ]
      for (const { who, n } of spoken) {
        const blocks = [
          { thinking: `thought ${n}`, signature: SIGNATURE },
          { id: 'Bash:0', name: 'Bash', input: `{"n": ${n}, "who": "${who}"}` },
        ]
        fixture.upstream.script('claude', answer(blocks))
        await ask([asking(who)])
      }
      for (const { who, n } of spoken) {
        fixture.upstream.script('claude', answer([{ text: 'Done.' }]))
        expect(await ask([asking(who), ...calling(`{"who":"${who}","n":${n}}`)])).toMatchObject([
          { type: 'thinking', thinking: `thought ${n}` },
          { type: 'tool_use' },
        ])
      }
      fixture.upstream.script('claude', answer([{ text: 'Done.' }]))
      expect(await ask([asking('Carol'), ...calling('{"who":"Bob","n":2}')])).toMatchObject([
        { type: 'tool_use' },
      ])
    },
  )

  test('thoughts are restored in a shortened conversation if the id of their call is random', async () => {
    const id = 'toolu_01A09q90qw90lq917835lq9'
    await signedCall('claude', id)
    fixture.upstream.script('claude', wholeMessage([{ text: 'Sunny.' }]))
    await say('claude', [{ role: 'user', content: 'A summary.' }, ...history(id).slice(1)])
    expect(sentTurn('claude')).toEqual(WITH)
  })

  test('a stored thinking signature is encrypted and survives a kill; one moved to another row is not restored', async () => {
    await signedCall('claude', 'toolu_kept')
    await signedCall('claude', 'toolu_moved_row')
    await fixture.gateway.kill()
    for (const name of readdirSync(fixture.gateway.dataDir).filter((file) => file.includes('.db'))) {
      const bytes = readFileSync(join(fixture.gateway.dataDir, name))
      for (const secret of [SIGNATURE, THOUGHT, 'toolu_kept']) expect(bytes.includes(secret)).toBe(false)
    }
    const database = databaseOf(fixture.gateway.dataDir)
    await fixture.gateway.restart()
    fixture.upstream.script('claude', wholeMessage([{ text: 'Sunny.' }]))
    expect(await say('claude', history('toolu_kept'))).toBe(200)
    expect(sentTurn('claude')).toEqual(WITH)
    await fixture.gateway.stop()
    database.write(
      `UPDATE kept SET cipher = (SELECT cipher FROM kept AS other WHERE other.key <> kept.key LIMIT 1)`,
    )
    await fixture.gateway.restart()
    for (const id of ['toolu_kept', 'toolu_moved_row']) {
      expect(await say('claude', history(id))).toBe(200)
      expect(sentTurn('claude')).toEqual(WITHOUT)
    }
  })

  test('a thinking signature expires after options.keep_signatures, and is not stored if that is 0', async () => {
    const upstream = fixture.upstream
    await fixture.gateway.apply(configure(upstream, { keep_signatures: '200ms' }))
    await signedCall('claude', 'toolu_short')
    fixture.upstream.script('claude', wholeMessage([{ text: 'Sunny.' }]))
    const after = async (): Promise<unknown> => {
      await say('claude', history('toolu_short'))
      return sentTurn('claude')
    }
    await expect.poll(after, { timeout: 60_000, interval: 100 }).toEqual(WITHOUT)
    await fixture.gateway.apply(configure(upstream, { keep_signatures: 0 }))
    await signedCall('claude', 'toolu_off')
    fixture.upstream.script('claude', wholeMessage([{ text: 'Sunny.' }]))
    await say('claude', history('toolu_off'))
    expect(sentTurn('claude')).toEqual(WITHOUT)
  })
})
