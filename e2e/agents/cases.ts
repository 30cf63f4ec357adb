import { DEMO_MODELS } from '@sluice/simulator'
import {
  type Agent,
  CLAUDE_CODE,
  CODEX,
  CODEX_SOCKETS,
  GEMINI_CLI,
  OPENCODE,
  PI,
  QWEN_CODE,
} from './agents.ts'

/** Models of the strict upstreams, which refuse what the real provider would refuse. */
export const STRICT_MODELS = {
  chat: ['qwen3-coder-plus', 'gpt-5-mini'],
  messages: ['claude-sonnet-4-5', 'claude-opus-4-5', 'claude-opus-4-7', 'claude-opus-5'],
  responses: ['gpt-5.5', 'gpt-6.1-sol'],
  gemini: ['gemini-3-pro-preview'],
} as const

/**
 * Names whose beginning determines which tools Codex offers, and the models that answer. With the first name
 * it offers functions, a custom tool and a search for tools; with the second, one custom tool that runs
 * scripts, in a namespace and among the items.
 */
const CODEX_NAMES = {
  chat: { 'gpt-5.5-over-chat': 'gpt-5-mini', 'gpt-6.1-sol-over-chat': 'qwen3-coder-plus' },
  messages: { 'gpt-5.5-over-messages': 'claude-sonnet-4-5', 'gpt-6.1-sol-over-messages': 'claude-opus-5' },
} as const

/** Names in Codex of the models that sign their output, and require all signatures in each turn. */
const SIGNING_NAMES = {
  messages: { 'gpt-5.5-signed-over-messages': 'claude-opus-4-5' },
  gemini: { 'gpt-5.5-signed-over-gemini': 'gemini-3-pro-preview' },
} as const

/** The names in Codex of the models of a strict channel. */
export function codexNames(protocol: keyof typeof STRICT_MODELS): Readonly<Record<string, string>> {
  switch (protocol) {
    case 'chat':
      return CODEX_NAMES.chat
    case 'messages':
      return { ...CODEX_NAMES.messages, ...SIGNING_NAMES.messages }
    case 'gemini':
      return SIGNING_NAMES.gemini
    case 'responses':
      return {}
  }
}

/** An agent and a model; the channel of the model determines whether the agent's calls are converted. */
export interface Case {
  readonly agent: Agent
  readonly model: string
  readonly upstream: 'demo' | 'strict'
  /** The number of questions in one conversation, with three calls each; absent for a single task. */
  readonly turns?: number
}

export const AGENTS: readonly Agent[] = [
  CLAUDE_CODE,
  QWEN_CODE,
  OPENCODE,
  PI,
  CODEX,
  CODEX_SOCKETS,
  GEMINI_CLI,
]

/** The demo's models for conversations. */
const TALKING = [
  ...DEMO_MODELS.chat,
  ...DEMO_MODELS.messages,
  ...DEMO_MODELS.responses,
  ...DEMO_MODELS.gemini,
]

/** Every agent on every conversation model of the demo, and on strict models of several dialects. */
export const CASES: readonly Case[] = [
  ...AGENTS.flatMap((agent) => TALKING.map((model): Case => ({ agent, model, upstream: 'demo' }))),
  { agent: CLAUDE_CODE, model: 'claude-sonnet-4-5', upstream: 'strict' },
  { agent: CLAUDE_CODE, model: 'claude-opus-4-7', upstream: 'strict' },
  { agent: CLAUDE_CODE, model: 'claude-opus-5', upstream: 'strict' },
  { agent: CLAUDE_CODE, model: 'gpt-5-mini', upstream: 'strict' },
  { agent: QWEN_CODE, model: 'qwen3-coder-plus', upstream: 'strict' },
  { agent: QWEN_CODE, model: 'claude-sonnet-4-5', upstream: 'strict' },
  { agent: OPENCODE, model: 'gpt-5-mini', upstream: 'strict' },
  { agent: OPENCODE, model: 'claude-sonnet-4-5', upstream: 'strict' },
  { agent: PI, model: 'gpt-5-mini', upstream: 'strict' },
  { agent: PI, model: 'claude-sonnet-4-5', upstream: 'strict' },
  { agent: GEMINI_CLI, model: 'claude-sonnet-4-5', upstream: 'strict' },
  { agent: GEMINI_CLI, model: 'gpt-5-mini', upstream: 'strict' },
  ...[...STRICT_MODELS.responses, ...Object.keys(CODEX_NAMES.chat), ...Object.keys(CODEX_NAMES.messages)].map(
    (model): Case => ({ agent: CODEX, model, upstream: 'strict' }),
  ),
  ...['claude-opus-4-5', 'gemini-3-pro-preview'].map(
    (model): Case => ({ agent: CLAUDE_CODE, model, upstream: 'strict', turns: 5 }),
  ),
  ...[...Object.keys(SIGNING_NAMES.messages), ...Object.keys(SIGNING_NAMES.gemini)].map(
    (model): Case => ({ agent: CODEX, model, upstream: 'strict', turns: 5 }),
  ),
  ...Object.keys(SIGNING_NAMES.messages).map(
    (model): Case => ({ agent: CODEX_SOCKETS, model, upstream: 'strict', turns: 5 }),
  ),
]

const MODELS_OF: Readonly<Record<Agent['dialect'], readonly string[]>> = {
  chat: [...DEMO_MODELS.chat, ...STRICT_MODELS.chat],
  messages: [...DEMO_MODELS.messages, ...STRICT_MODELS.messages],
  responses: [...DEMO_MODELS.responses, ...STRICT_MODELS.responses],
  gemini: [...DEMO_MODELS.gemini, ...STRICT_MODELS.gemini],
}

/** Whether the case's calls are converted from one dialect to another. */
export function isConverted({ agent, model }: Case): boolean {
  return !MODELS_OF[agent.dialect].includes(model)
}
