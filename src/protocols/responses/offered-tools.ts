import type { OfferedTool, ProviderTools } from '../../domain/tool-use.ts'
import { asRecord } from '../json/record.ts'
import type { ScannedObject } from '../json/scanned-object.ts'
import { toolsBesides } from '../tools-besides.ts'
import { itemNodes } from './input-items.ts'

/** Types of tools that clients run. */
const OF_CLIENTS: ReadonlySet<unknown> = new Set(['function', 'custom'])
const NONE: readonly OfferedTool[] = []

/**
 * The tools of a checked request that its provider runs, and others of types of their own: those of `tools`,
 * and those that items of its input add (`additional_tools`, `tool_search_output`). A namespace has functions
 * and custom tools alone as OpenAI says; anything else in one counts as it would outside.
 */
export function offeredTools(scan: ScannedObject): ProviderTools | undefined {
  const tools = [...toolsBesides(scan, OF_CLIENTS).flatMap(offered), ...itemTools(scan)]
  if (tools.length === 0) return undefined
  const maxCalls = scan.value('max_tool_calls')
  return { tools, ...(typeof maxCalls === 'number' && { maxCalls }) }
}

function offeredIn(list: unknown): readonly OfferedTool[] {
  return Array.isArray(list) ? list.flatMap((tool: unknown) => offered(asRecord(tool) ?? {})) : NONE
}

function itemTools(scan: ScannedObject): readonly OfferedTool[] {
  return itemNodes(scan).flatMap((item) => {
    const list = scan.memberOf(item, 'tools')
    return list === undefined ? NONE : offeredIn(scan.parse(list))
  })
}

function offered(tool: Readonly<Record<string, unknown>>): OfferedTool[] {
  const { type, size, quality } = tool
  if (typeof type !== 'string' || OF_CLIENTS.has(type)) return []
  if (type === 'namespace') return [...offeredIn(tool['tools'])]
  if (type === 'shell') {
    const environment = asRecord(tool['environment'])
    // Without a container the client runs the commands.
    return String(environment?.['type']).startsWith('container')
      ? [{ type, form: memoryOf(environment) }]
      : []
  }
  if (type === 'code_interpreter') return [{ type, form: memoryOf(asRecord(tool['container'])) }]
  const isFixed = [size, quality].every((value) => typeof value === 'string' && value !== 'auto')
  if (type === 'image_generation' && isFixed) return [{ type, form: `${String(size)}/${String(quality)}` }]
  return [{ type }]
}

function memoryOf(container: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const limit = container?.['memory_limit']
  return typeof limit === 'string' ? limit : undefined
}
