import { agentConversation } from '../load/agent-conversation.ts'

/** A message of the generated conversation, in the form of chat. */
interface Said {
  readonly role: string
  readonly content: string
  readonly tool_call_id?: string
  readonly tool_calls?: readonly {
    readonly id: string
    readonly function: { readonly name: string; readonly arguments: string }
  }[]
}

interface Offered {
  readonly function: { readonly name: string; readonly description: string; readonly parameters: object }
}

/** A request of a session. */
export interface SessionRequest {
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: object
}

/** How a client speaks: as Claude Code, as Codex, or with nothing that names its session. */
export type Client = 'claude' | 'codex' | 'generic' | 'marked' | 'gemini'

const BYTES = 150_000
/** A call and its result. */
const PER_TURN = 2
const EPHEMERAL = { type: 'ephemeral' }
/** The smallest that every provider takes. */
const MAX_TOKENS = 16

/** Returns the turns of a session: each request is the one before and a call of a tool with its result. */
export function sessionTurns(
  client: Client,
  name: string,
  turns: number,
): (model: string, turn: number) => SessionRequest {
  const { tools, messages } = agentConversation(BYTES)
  const [system, first, ...rest] = (messages as Said[]).filter(
    ({ role }, index) => index < 2 || role === 'assistant' || role === 'tool',
  )
  if (!system || !first || rest.length < turns * PER_TURN) throw new Error('the conversation is too short')
  // Another project for each session, at the very beginning of its prompt.
  const own = (tools as Offered[]).map((tool, index) =>
    index > 0
      ? tool
      : {
          ...tool,
          function: { ...tool.function, description: `Project ${name}. ${tool.function.description}` },
        },
  )
  return (model, turn) => {
    const said = [first, ...rest.slice(0, turn * PER_TURN)]
    return REQUESTS[client]({ name, model, tools: own, system: system.content, said })
  }
}

interface Prompt {
  readonly name: string
  readonly model: string
  readonly tools: readonly Offered[]
  readonly system: string
  readonly said: readonly Said[]
}

const REQUESTS: Readonly<Record<Client, (prompt: Prompt) => SessionRequest>> = {
  /** Marks the end of the system prompt and the last two messages of the user. */
  claude: ({ name, model, tools, system, said }) => ({
    path: '/messages',
    headers: { 'x-claude-code-session-id': name, 'anthropic-version': '2023-06-01' },
    body: {
      model,
      max_tokens: MAX_TOKENS,
      metadata: { user_id: `user_0_account__session_${name}` },
      tools: tools.map(({ function: { name: called, description, parameters } }) => ({
        name: called,
        description,
        input_schema: parameters,
      })),
      system: [{ type: 'text', text: system, cache_control: EPHEMERAL }],
      messages: said.map((message, index) => asMessage(message, index >= said.length - 3)),
    },
  }),
  codex: ({ name, model, tools, system, said }) => ({
    path: '/responses',
    headers: { session_id: name },
    body: {
      model,
      max_output_tokens: MAX_TOKENS,
      store: false,
      prompt_cache_key: name,
      instructions: system,
      tools: tools.map(({ function: named }) => ({ type: 'function', ...named })),
      input: said.flatMap(asItems),
    },
  }),
  gemini: ({ model, tools, system, said }) => {
    const calls = said.flatMap(({ tool_calls }) => tool_calls ?? [])
    const names = new Map(calls.map(({ id, function: { name } }) => [id, name]))
    return {
      path: `/models/${model}:generateContent`,
      headers: {},
      body: {
        systemInstruction: { parts: [{ text: system }] },
        tools: [
          {
            functionDeclarations: tools.map(({ function: { name, description, parameters } }) => ({
              name,
              description,
              parametersJsonSchema: parameters,
            })),
          },
        ],
        contents: said.map((message) => asContent(message, names)),
        generationConfig: { maxOutputTokens: MAX_TOKENS },
      },
    }
  },
  generic: (prompt) => chatRequest(prompt, [{ role: 'system', content: prompt.system }, ...prompt.said]),
  /** Chat with marks where Claude Code has them, as clients of OpenRouter write them. */
  marked: (prompt) =>
    chatRequest(prompt, [
      { role: 'system', content: [markedText(prompt.system)] },
      ...prompt.said.map((message, index) =>
        message.role !== 'assistant' && index >= prompt.said.length - 3
          ? { ...message, content: [markedText(message.content)] }
          : message,
      ),
    ]),
}

/** Stands for the signature of a call that another model made. */
const UNSIGNED = 'skip_thought_signature_validator'

function asContent(
  { role, content, tool_calls, tool_call_id }: Said,
  names: ReadonlyMap<string, string>,
): object {
  if (role === 'tool') {
    const name = names.get(tool_call_id ?? '')
    return { role: 'user', parts: [{ functionResponse: { name, response: { output: content } } }] }
  }
  const calls = (tool_calls ?? []).map(({ function: { name, arguments: given } }) => ({
    functionCall: { name, args: JSON.parse(given) as unknown },
    thoughtSignature: UNSIGNED,
  }))
  const text = content === '' ? [] : [{ text: content }]
  return { role: role === 'user' ? 'user' : 'model', parts: [...text, ...calls] }
}

function chatRequest({ model, tools }: Prompt, messages: readonly object[]): SessionRequest {
  const body = { model, max_completion_tokens: MAX_TOKENS, tools, messages }
  return { path: '/chat/completions', headers: {}, body }
}

function markedText(text: string): object {
  return { type: 'text', text, cache_control: EPHEMERAL }
}

function asMessage({ role, content, tool_calls, tool_call_id }: Said, isMarked: boolean): object {
  const marked = isMarked ? { cache_control: EPHEMERAL } : {}
  if (role === 'tool')
    return {
      role: 'user',
      content: [{ type: 'tool_result', tool_use_id: tool_call_id, content, ...marked }],
    }
  if (role === 'user') return { role, content: [{ type: 'text', text: content, ...marked }] }
  return {
    role,
    content: [
      { type: 'text', text: content },
      ...(tool_calls ?? []).map(({ id, function: { name, arguments: given } }) => ({
        type: 'tool_use',
        id,
        name,
        input: JSON.parse(given) as unknown,
      })),
    ],
  }
}

function asItems({ role, content, tool_calls, tool_call_id }: Said): object[] {
  if (role === 'tool') return [{ type: 'function_call_output', call_id: tool_call_id, output: content }]
  const type = role === 'user' ? 'input_text' : 'output_text'
  return [
    { type: 'message', role, content: [{ type, text: content }] },
    ...(tool_calls ?? []).map(({ id, function: named }) => ({
      type: 'function_call',
      call_id: id,
      ...named,
    })),
  ]
}
