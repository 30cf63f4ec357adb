import type { Dropped } from '../codec.ts'
import type { Tool } from '../conversation.ts'
import { membersOf, objectOf } from '../json/json-text.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { cacheControl, cacheOf } from './cache-control.ts'
import { drop } from './dropped-fields.ts'
import { type Fields, fieldsAt, booleanAt, listAt, present, textAt } from '../field.ts'
import { schemaText } from '../schema-text.ts'

/**
 * Decodes the functions in `tools`; other kinds are dropped and reported. A tool without a type is a function
 * to some clients.
 */
export function decodeTools(scan: ScannedObject, dropped: Dropped): Tool[] {
  const list = scan.span('tools')
  const tools = listAt(present(scan.value('tools')) ?? [], 'tools')
  const nodes = list && tools.length > 0 ? scan.elements(list.node) : []
  return nodes.flatMap((node, index) => {
    const path = `tools[${index}]`
    const tool = fieldsAt(tools[index], path)
    const type = present(tool['type']) ?? 'function'
    if (type === 'function') return decodeFunction(scan, node, tool, path)
    drop(dropped, textAt(type, `${path}.type`) === 'custom' ? 'tools.custom' : 'tools.unknown')
    return []
  })
}

function decodeFunction(scan: ScannedObject, node: Node, tool: Fields, path: string): Tool {
  const at = `${path}.function`
  const definition = fieldsAt(tool['function'], at)
  const description = present(definition['description'])
  const strict = present(definition['strict'])
  return {
    name: textAt(definition['name'], `${at}.name`),
    description: description === undefined ? undefined : textAt(description, `${at}.description`),
    schema: schemaText(scan, scan.memberOf(node, 'function'), 'parameters', at),
    strict: strict === undefined ? undefined : booleanAt(strict, `${at}.strict`),
    ...cacheOf(tool, path),
  }
}

/** Encodes a tool as JSON text. */
export function encodeTool({ name, description, schema, strict, cache }: Tool): string {
  const definition = objectOf([
    ...membersOf({ name, description }),
    ['parameters', schema],
    ...membersOf({ strict }),
  ])
  return objectOf([['type', '"function"'], ['function', definition], ...membersOf(cacheControl(cache))])
}
