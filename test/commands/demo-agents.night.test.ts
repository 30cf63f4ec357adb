import { Ajv } from 'ajv'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DEMO_MODELS } from '@sluice/simulator'
import { call } from '../fixtures/client.ts'
import { DEMO_AGENTS, type DemoAgent, FOLDER } from '../fixtures/demo-agents.ts'
import { type DemoCall, type DemoRun, runTask } from '../fixtures/demo-session.ts'
import { type DemoFixture, startDemoFixture } from '../fixtures/demo-fixture.ts'
import type { RunningGateway } from '../fixtures/gateway.ts'

let fixture: DemoFixture
let gateway: RunningGateway

beforeAll(async () => {
  fixture = await startDemoFixture()
  gateway = fixture.gateway
})
afterAll(() => fixture?.close())

const MODELS = [...DEMO_MODELS.chat, ...DEMO_MODELS.messages, ...DEMO_MODELS.responses]
const PAIRS = DEMO_AGENTS.flatMap((agent) => MODELS.map((model) => ({ agent, model, name: agent.name })))
const FILES: Readonly<Record<string, string>> = {
  'notes.txt': 'The meeting moved to Thursday at 14:30.\nBring the blue folder.\n',
  'plan.txt': 'First the foundation, then the roof.\n',
}

/** Reads the files in the agent's folder; any other call is an error. */
function acting(agent: DemoAgent) {
  const ajv = new Ajv({ strict: false })
  return ({ name, input }: DemoCall): string => {
    const schema = agent.tools.find((tool) => tool.name === name)?.schema
    if (!schema) return `There is no tool ${name}`
    if (!ajv.validate(schema, input)) return `Invalid arguments: ${ajv.errorsText()}`
    const path = Object.values(input as Record<string, unknown>).find((value) =>
      String(value).startsWith('/'),
    )
    const content = FILES[String(path).replace(`${FOLDER}/`, '')]
    return /^read/i.test(name) && content !== undefined ? agent.shown(String(path), content) : 'No such file'
  }
}

function run(agent: DemoAgent, model: string, prompt: string): Promise<DemoRun> {
  return runTask(agent, gateway.url, model, prompt, acting(agent))
}

describe('requests of agents', () => {
  test.each(PAIRS)(
    'the simulated agent reads the named file and quotes it: $name on $model',
    async ({ agent, model }) => {
      const { calls, answer } = await run(agent, model, 'Read notes.txt and tell me what it says')
      expect(calls.map(({ input }) => Object.values(input as object))).toEqual([[`${FOLDER}/notes.txt`]])
      expect(answer).toContain('The meeting moved to Thursday at 14:30.\nBring the blue folder.')
      expect(answer).not.toContain('2\t')
    },
  )

  test.each(PAIRS)(
    'the simulated agent makes two tool calls at most: $name on $model',
    async ({ agent, model }) => {
      const { calls, answer } = await run(agent, model, 'Read notes.txt, plan.txt and missing.txt')
      expect(calls).toHaveLength(2)
      expect(answer).toContain('Bring the blue folder.')
      expect(answer).toContain('First the foundation, then the roof.')
    },
  )

  test.each(PAIRS)(
    'the simulated agent answers without a tool call if no tool fits: $name on $model',
    async ({ agent, model }) => {
      const { calls, answer } = await run(agent, model, 'Why is the sky blue?')
      expect(calls).toEqual([])
      expect(answer).toContain('sky')
    },
  )

  test.each(PAIRS)(
    'the simulated agent reports a missing file and does not retry: $name on $model',
    async ({ agent, model }) => {
      const { calls, answer } = await run(agent, model, 'Read missing.txt')
      expect(calls).toHaveLength(1)
      expect(answer).toContain('No such file')
    },
  )
})

describe('additional requests of agents', () => {
  const chat = async (body: object) =>
    (await call(gateway.url, body, { key: 'ann' })).json().choices[0]?.message.content ?? ''
  const messages = async (body: object) => {
    const answer = await call(gateway.url, body, { key: 'ann', path: '/v1/messages' })
    const { content } = JSON.parse(answer.text) as { content: { type: string; text?: string }[] }
    return content.map(({ text }) => text ?? '').join('')
  }

  test.each(MODELS)('the simulated model gives a conversation a short title: %s', async (model) => {
    const title = await chat({
      model,
      messages: [
        {
          role: 'system',
          content: 'You are a title generator. You output ONLY a thread title. Nothing else.',
        },
        { role: 'user', content: 'Generate a title for this conversation:\n' },
        { role: 'user', content: '"Read notes.txt and tell me what it says"' },
      ],
    })
    expect(title).toBe('Read notes.txt')
  })

  test.each(MODELS)(
    'the simulated model returns the topic of a message as JSON, as the prompt asks: %s',
    async (model) => {
      const said = await messages({
        model,
        max_tokens: 512,
        system:
          "Analyze if this message indicates a new conversation topic. Format your response as a JSON object with two fields: 'isNewTopic' (boolean) and 'title' (string, or null). No other text.",
        messages: [{ role: 'user', content: 'Why is the sky blue?' }],
      })
      expect(JSON.parse(said)).toEqual({ isNewTopic: expect.any(Boolean), title: 'Why is the sky blue' })
    },
  )

  test.each(MODELS)(
    'the simulated model answers a quota check with as few tokens as its API allows: %s',
    async (model) => {
      const answer = await call(
        gateway.url,
        { model, max_tokens: 1, messages: [{ role: 'user', content: 'quota' }] },
        { key: 'ann', path: '/v1/messages' },
      )
      expect(JSON.parse(answer.text)).toMatchObject({
        stop_reason: 'max_tokens',
        usage: { output_tokens: 1 },
      })
    },
  )
})
