import { DEMO_MODELS } from '../../src/simulator/demo-models.ts'
import { type Agent, CLAUDE_CODE, OPENCODE, PI, QWEN_CODE } from './agents.ts'

/** Models of the strict upstreams, which refuse what a provider would. */
export const STRICT_MODELS = {
  chat: ['qwen3-coder-plus', 'gpt-5-mini'],
  messages: ['claude-sonnet-4-5', 'claude-opus-4-7', 'claude-opus-5'],
} as const

/**
 * An agent and a model; the channel that serves the model decides whether the agent's calls are converted.
 */
export interface Case {
  readonly agent: Agent
  readonly model: string
  readonly upstream: 'demo' | 'strict'
}

export const AGENTS: readonly Agent[] = [CLAUDE_CODE, QWEN_CODE, OPENCODE, PI]

/** Every agent on every model of the demo that talks, and each of them on strict models of both dialects. */
export const CASES: readonly Case[] = [
  ...AGENTS.flatMap((agent) =>
    [...DEMO_MODELS.chat, ...DEMO_MODELS.messages].map((model): Case => ({ agent, model, upstream: 'demo' })),
  ),
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
]

/** Whether the case's calls are converted from one dialect to another. */
export function isConverted({ agent, model }: Case): boolean {
  const chat: readonly string[] = [...DEMO_MODELS.chat, ...STRICT_MODELS.chat]
  return chat.includes(model) !== (agent.path === '/v1/chat/completions')
}
