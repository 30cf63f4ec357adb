import { asRecord } from './json/record.ts'

/**
 * Texts that code printed which the provider ran for the model, from a part, block or item of any protocol.
 * They count as output that arrived. `docs/ledger.md: Outcomes`.
 */
export function executedCodeOutput(value: unknown): readonly string[] {
  const record = asRecord(value)
  if (!record) return NONE
  const type = String(record['type'])
  const result = record['codeExecutionResult'] ?? record['code_execution_result'] ?? record['toolResult']
  if (result !== undefined) return textsIn(result)
  if (type === 'code_interpreter_call') return textsIn(record['outputs'])
  if (type === 'shell_call_output') return textsIn(record['output'])
  return type.endsWith('code_execution_tool_result') ? textsIn(record['content']) : NONE
}

/** The same with the code itself and the inputs of other tools that the provider ran. */
export function providerToolTexts(value: unknown): readonly string[] {
  const record = asRecord(value)
  if (!record) return NONE
  const type = String(record['type'])
  const input = type.endsWith('tool_use') ? record['input'] : asRecord(record['toolCall'])?.['args']
  const code = [record['code'], asRecord(record['executableCode'])?.['code']]
  return [
    ...code.filter((text): text is string => typeof text === 'string' && text !== ''),
    ...(input === undefined ? NONE : [JSON.stringify(input)]),
    ...executedCodeOutput(record),
  ]
}

const NONE: readonly string[] = []

/** Members of results that contain what was printed, or the content of a file that was shown. */
const TEXTS = ['logs', 'stdout', 'stderr', 'text'] as const

/** Members of results that are text or contain further results. */
const NESTED = ['output', 'content', 'lines'] as const

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return value === '' ? [] : [value]
  if (Array.isArray(value)) return value.flatMap(textsIn)
  const record = asRecord(value)
  if (!record) return []
  return [...TEXTS, ...NESTED].flatMap((name) => textsIn(record[name]))
}
