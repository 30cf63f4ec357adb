import type { Content, ToolCall } from './answer.ts'

interface ChatPart {
  readonly content?: string | null
  readonly reasoning_content?: string | null
  readonly reasoning?: string | null
  readonly tool_calls?: readonly {
    readonly index?: number
    readonly id?: string
    readonly function?: { readonly name?: string; readonly arguments?: string }
  }[]
}

interface ChatReply {
  readonly choices?: readonly { readonly delta?: ChatPart; readonly message?: ChatPart }[]
  readonly error?: { readonly message?: string }
}

/** Adds to the content what an event of a stream, or a whole response, in the chat protocol contains. */
export function readChat(content: Content, reply: unknown): Content {
  const { choices, error } = reply as ChatReply
  if (error) return { ...content, error: error.message ?? '' }
  const part = choices?.[0]?.delta ?? choices?.[0]?.message
  if (!part) return content
  return {
    ...content,
    text: content.text + (part.content ?? ''),
    thinking: content.thinking + (part.reasoning_content ?? part.reasoning ?? ''),
    calls: withCalls(content.calls, part.tool_calls ?? []),
  }
}

function withCalls(
  calls: readonly ToolCall[],
  parts: NonNullable<ChatPart['tool_calls']>,
): readonly ToolCall[] {
  const all = [...calls]
  for (const [order, { index = order, id, function: called }] of parts.entries()) {
    const before = all[index] ?? { id: '', name: '', input: '' }
    all[index] = {
      id: id ?? before.id,
      name: before.name + (called?.name ?? ''),
      input: before.input + (called?.arguments ?? ''),
    }
  }
  return all
}
