import type { Dropped } from '../codec.ts'
import type { Grammar, Tool } from '../conversation.ts'
import { customTool } from '../custom-tool.ts'
import { membersOf, objectOf } from '../json/json-text.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { cacheControl, cacheOf } from './cache-control.ts'
import { drop } from './dropped-fields.ts'
import { type Fields, fieldsAt, booleanAt, listAt, present, textAt } from '../field.ts'
import { schemaText } from '../schema-text.ts'

/**
 * Decodes the functions and custom tools in `tools`; other kinds are dropped and reported. Some clients omit
 * the type of functions.
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
    if (textAt(type, `${path}.type`) === 'custom') return decodeCustom(tool, path)
    drop(dropped, 'tools.unknown')
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

function decodeCustom(tool: Fields, path: string): Tool {
  const at = `${path}.custom`
  const { name: given, description: text, format } = fieldsAt(tool['custom'], at)
  const name = textAt(given, `${at}.name`)
  const description = present(text) === undefined ? undefined : textAt(text, `${at}.description`)
  const grammar = present(format) === undefined ? undefined : decodeGrammar(format, `${at}.format`)
  const asFunction = customTool(description, grammar)
  return {
    name,
    description: asFunction.description || undefined,
    schema: asFunction.schema,
    strict: undefined,
    form: { type: 'custom', name, custom: { description, grammar } },
    ...cacheOf(tool, path),
  }
}

function decodeGrammar(format: unknown, path: string): Grammar | undefined {
  const fields = fieldsAt(format, path)
  if (fields['type'] !== 'grammar') return undefined
  const { syntax, definition } = fieldsAt(fields['grammar'], `${path}.grammar`)
  return {
    syntax: textAt(syntax, `${path}.grammar.syntax`),
    definition: textAt(definition, `${path}.grammar.definition`),
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
