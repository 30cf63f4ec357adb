import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type { DemoAgent } from './demo-agents.ts'

/** A tool call of the model. */
export interface DemoCall {
  readonly name: string
  readonly input: unknown
}

/** The record of a task that an agent was given. */
export interface DemoRun {
  readonly calls: readonly DemoCall[]
  /** The model's last text; undefined if it still called tools in the last turn. */
  readonly answer: string | undefined
}

/** Executes a call; returns the tool's result. */
export type Act = (call: DemoCall) => string

const MAX_TURNS = 6

/** Gives an agent a task and executes its calls until the model has answered. */
export function runTask(
  agent: DemoAgent,
  url: string,
  model: string,
  prompt: string,
  act: Act,
): Promise<DemoRun> {
  return agent.dialect === 'chat'
    ? overChat(agent, url, model, prompt, act)
    : overMessages(agent, url, model, prompt, act)
}

const KEY = 'sk-ann'

/** The users in gateway.yaml, because the demo's configuration has none. */
export const DEMO_USERS = `users:
  - { id: 1, username: root, role: 100 }
  - { id: 2, username: ann, quota: 1000000000000, tokens: [{ name: ann, key: ${KEY}, unlimited_quota: true }] }`

async function overChat(
  agent: DemoAgent,
  url: string,
  model: string,
  prompt: string,
  act: Act,
): Promise<DemoRun> {
  const client = new OpenAI({ apiKey: KEY, baseURL: `${url}/v1`, maxRetries: 0 })
  const calls: DemoCall[] = []
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: 'system', content: agent.system },
    { role: 'user', content: agent.userParts(prompt).map((text) => ({ type: 'text', text })) },
  ]
  const tools = agent.tools.map(
    ({ name, description, schema }): OpenAI.ChatCompletionTool => ({
      type: 'function',
      function: { name, description, parameters: schema },
    }),
  )
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const stream = client.chat.completions.stream({
      model,
      messages,
      tools,
      stream_options: { include_usage: true },
    })
    const said = (await stream.finalChatCompletion()).choices[0]?.message
    const wanted = (said?.tool_calls ?? []).filter((one) => one.type === 'function')
    if (wanted.length === 0) return { calls, answer: said?.content ?? '' }
    messages.push({ role: 'assistant', content: said?.content ?? null, tool_calls: wanted })
    for (const { id, function: asked } of wanted) {
      const call = { name: asked.name, input: JSON.parse(asked.arguments) as unknown }
      calls.push(call)
      messages.push({ role: 'tool', tool_call_id: id, content: act(call) })
    }
  }
  return { calls, answer: undefined }
}

async function overMessages(
  agent: DemoAgent,
  url: string,
  model: string,
  prompt: string,
  act: Act,
): Promise<DemoRun> {
  const client = new Anthropic({ apiKey: KEY, baseURL: url, maxRetries: 0 })
  const calls: DemoCall[] = []
  const messages: unknown[] = [
    { role: 'user', content: agent.userParts(prompt).map((text) => ({ type: 'text', text })) },
    ...(agent.aside === undefined ? [] : [{ role: 'system', content: agent.aside }]),
  ]
  const tools = agent.tools.map(({ name, description, schema }) => ({
    name,
    description,
    input_schema: schema,
  }))
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const body = {
      model,
      max_tokens: 32_000,
      system: agent.system,
      thinking: { type: 'adaptive' },
      messages,
      tools,
    }
    const { content } = await client.messages.stream(body as Anthropic.MessageStreamParams).finalMessage()
    const wanted = content.filter((block) => block.type === 'tool_use')
    if (wanted.length === 0) {
      return { calls, answer: content.map((block) => (block.type === 'text' ? block.text : '')).join('') }
    }
    const results = wanted.map(({ id, name, input }) => {
      calls.push({ name, input })
      return { type: 'tool_result', tool_use_id: id, content: act({ name, input }) }
    })
    const reminder = { type: 'text', text: '<system-reminder>\nRead the plan again.\n</system-reminder>' }
    messages.push({ role: 'assistant', content }, { role: 'user', content: [...results, reminder] })
  }
  return { calls, answer: undefined }
}
