import type { OfferedTool, ProviderTools } from '../../domain/tool-use.ts'
import { asRecord } from '../json/record.ts'
import type { ScannedObject } from '../json/scanned-object.ts'

/** The tools of a checked request that its provider runs, and others of types of their own. */
export function offeredTools(scan: ScannedObject): ProviderTools | undefined {
  const list = scan.value('tools')
  if (!Array.isArray(list)) return undefined
  const tools = list.flatMap((tool: unknown) => offered(asRecord(tool) ?? {}))
  if (tools.length === 0) return undefined
  const maxCalls = scan.value('max_tool_calls')
  return { tools, ...(typeof maxCalls === 'number' && { maxCalls }) }
}

function offered(tool: Readonly<Record<string, unknown>>): OfferedTool[] {
  const { type, size, quality } = tool
  if (typeof type !== 'string' || type === 'function' || type === 'custom') return []
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
