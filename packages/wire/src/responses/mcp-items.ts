import { asRecord, stringOrEmpty } from '../json/record.ts'

/** Maximum length of a function's name at most providers. */
const MAX_NAME = 64

/**
 * The name of the function that stands for a tool of an MCP server: its listed name, without characters that providers refuse.
 * A longer one is cut, and 8 digits of a digest of `whole` keep it different from others with the same beginning.
 */
export function mcpFunctionName(listed: string, whole = listed): string {
  const plain = listed.replaceAll(/[^\w-]/g, '_')
  return plain.length <= MAX_NAME && whole === listed
    ? plain
    : `${plain.slice(0, MAX_NAME - 9)}_${digest(whole)}`
}

/** FNV-1a, 32 bits, as 8 digits. */
function digest(text: string): string {
  let value = 0x81_1c_9d_c5
  for (const byte of Buffer.from(text)) value = Math.imul(value ^ byte, 0x01_00_01_93)
  return (value >>> 0).toString(16).padStart(8, '0')
}

/** The call of a function, and its output. */
export interface FunctionExchange {
  readonly callId: string
  readonly name: string
  /** JSON text. */
  readonly input: string
  readonly output: string
  readonly isError: boolean
}

/** An item `mcp_call` as the call of a function, which every model understands. */
export function mcpCallAsFunction(item: Readonly<Record<string, unknown>>): FunctionExchange {
  const { id, name, arguments: input, output, error } = item
  const isError = error !== undefined && error !== null
  return {
    callId: stringOrEmpty(id),
    name: mcpFunctionName(stringOrEmpty(name)),
    input: stringOrEmpty(input),
    output: isError ? errorText(error) : stringOrEmpty(output),
    isError,
  }
}

/** The two items of a function call that stand for an item `mcp_call`, as JSON texts. */
export function functionItems({ callId, name, input, output }: FunctionExchange): readonly [string, string] {
  return [
    JSON.stringify({ type: 'function_call', call_id: callId, name, arguments: input }),
    JSON.stringify({ type: 'function_call_output', call_id: callId, output }),
  ]
}

/** What the error of an item `mcp_call` says. */
function errorText(error: unknown): string {
  if (typeof error === 'string') return error
  const { message, content } = asRecord(error) ?? {}
  if (typeof message === 'string') return message
  const texts = (Array.isArray(content) ? content : []).map((part) => stringOrEmpty(asRecord(part)?.['text']))
  return texts.filter((text) => text !== '').join('\n') || JSON.stringify(error)
}
