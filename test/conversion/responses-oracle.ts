import type { Content } from './oracle.ts'

type Json = Record<string, any> // oxlint-disable-line typescript/no-explicit-any -- JSON of a provider

/** Reads the content of a whole response with JSON.parse only, without code of the product. */
export function responseSays(json: string): Content {
  const { output, usage } = JSON.parse(json) as Json
  return { ...itemsSay(output as Json[]), usage: usageOf(usage) }
}

/** Reads the content of a response stream: its finished items, and the usage at its end. */
export function responseStreamSays(stream: string): Content {
  const events = stream
    .replaceAll('\r\n', '\n')
    .split('\n')
    .filter((line) => line.startsWith('data: {'))
    .map((line) => JSON.parse(line.slice('data: '.length)) as Json)
  const items = events
    .filter(({ type }) => type === 'response.output_item.done')
    .map(({ item }) => item as Json)
  const last = events.findLast(({ response }) => response)?.['response'] as Json | undefined
  return { ...itemsSay(items), usage: usageOf(last?.['usage']) }
}

function itemsSay(items: readonly Json[]): Omit<Content, 'usage'> {
  const textIn = (parts: readonly Json[] | undefined): string =>
    (parts ?? []).map((part) => part['text'] ?? part['refusal'] ?? '').join('')
  return {
    text: items.map((item) => (item['type'] === 'message' ? textIn(item['content']) : '')).join(''),
    thoughts: items
      .filter(({ type }) => type === 'reasoning')
      .map(({ summary, content }) =>
        summary?.length > 0 ? summary.map((part: Json) => part['text']).join('\n\n') : textIn(content),
      )
      .join(''),
    calls: items.flatMap(callIn),
  }
}

function callIn(item: Json): { name: string; input: unknown }[] {
  switch (item['type']) {
    case 'function_call':
      return [{ name: item['name'], input: JSON.parse(item['arguments'] || '{}') }]
    case 'custom_tool_call':
      return [{ name: item['name'], input: { input: item['input'] } }]
    case 'local_shell_call':
      return [{ name: 'local_shell', input: item['action'] }]
    case 'apply_patch_call':
      return [{ name: 'apply_patch', input: item['operation'] }]
    default:
      return []
  }
}

function usageOf(usage: Json | undefined | null): Content['usage'] {
  if (typeof usage?.['input_tokens'] !== 'number') return undefined
  const cached = usage['input_tokens_details']?.cached_tokens ?? 0
  return { prompt: usage['input_tokens'], cached, output: usage['output_tokens'] }
}
