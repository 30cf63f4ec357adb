import { stringOrEmpty } from '@sluice/wire/json/record'
import { GatewayError } from '../../errors.ts'
import { asFields, type Fields, McpError } from './protocol.ts'
import type { ClientAnswer } from './server-call.ts'

/** The outcome of a tool call of a model. */
export interface ToolOutcome {
  readonly status: 'completed' | 'failed' | 'incomplete'
  /** What the model reads. */
  readonly text: string
  /** Members of the item `mcp_call`. */
  readonly output: string | null
  readonly error: Fields | null
}

/** The outcome of a call that was answered. */
export function outcomeOf({ result, error }: ClientAnswer): ToolOutcome {
  if (error) return failedOutcome(error.message, { type: 'mcp_protocol_error', code: error.code })
  if (result['resultType'] === 'input_required')
    return failedOutcome('the tool requires input, which is not supported during a response')
  const text = textOf(result)
  if (result['isError'] !== true) return { status: 'completed', text, output: text, error: null }
  // Content as the server sent it could be nested too deep to be sent back in a request.
  const content = [{ type: 'text', text }]
  return { status: 'failed', text, output: null, error: { type: 'mcp_tool_execution_error', content } }
}

/** The outcome of a call that was refused. Throws an error that is no refusal. */
export function outcomeOfRefusal(error: unknown): ToolOutcome {
  if (error instanceof McpError)
    return failedOutcome(error.message, { type: 'mcp_protocol_error', code: error.code })
  if (error instanceof GatewayError)
    return failedOutcome(error.message, { type: 'http_error', code: error.kind.status })
  throw error
}

/** The outcome of a call that the gateway does not make. */
export function failedOutcome(
  message: string,
  of: Fields = { type: 'http_error', code: 400 },
  status: ToolOutcome['status'] = 'failed',
): ToolOutcome {
  return { status, text: message, output: null, error: { ...of, message } }
}

/** The result of a tool as a text. What is not a text is only named, because most models read texts alone. */
function textOf({ content, structuredContent }: Fields): string {
  const blocks: readonly unknown[] = Array.isArray(content) ? content : []
  const texts = blocks.map((block) => {
    const { type, text, resource, uri, mimeType } = asFields(block)
    if (typeof text === 'string') return text
    const { text: embedded, uri: address, mimeType: kind } = asFields(resource)
    if (typeof embedded === 'string') return embedded
    const about = [uri ?? address, mimeType ?? kind].map(stringOrEmpty).filter((one) => one !== '')
    return `[${[stringOrEmpty(type) || 'content', ...about].join(' ')}]`
  })
  if (texts.length > 0) return texts.join('\n')
  return structuredContent === undefined ? '' : JSON.stringify(structuredContent)
}
