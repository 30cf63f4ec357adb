import { agentConversation } from '../load/agent-conversation.ts'

/** Messages of one round of the conversation: a task, three calls of tools, and their results. */
const MESSAGES_PER_ROUND = 7

/** The requests of one agent. */
export interface AgentTurns {
  readonly count: number
  /** The body of a turn, from 0; each begins with the conversation of the one before. */
  readonly body: (turn: number) => string
}

/** Options of `agentTurns`. */
interface AgentPlan {
  readonly name: string
  readonly turns: number
  /** Approximate size of the last request. */
  readonly bytes: number
  readonly fields: object
}

/** The turns of an agent whose conversation differs from that of other names in its first message. */
export function agentTurns({ name, turns, bytes, fields }: AgentPlan): AgentTurns {
  const { tools, messages: all } = agentConversation(bytes)
  const [system, ...rounds] = all
  const count = Math.floor(rounds.length / MESSAGES_PER_ROUND)
  return {
    count: turns,
    body(turn) {
      const said = rounds.slice(0, (count - turns + turn + 1) * MESSAGES_PER_ROUND)
      const first = { ...system, name: `agent-${name}` }
      return JSON.stringify({ ...fields, tools, messages: [first, ...said] })
    },
  }
}
