import type { Dropped } from '../codec.ts'
import type { SearchLocation, Tool, WebSearch } from '../conversation.ts'
import { booleanAt, enumAt, type Fields, fieldsAt, listAt, present, textAt } from '../field.ts'
import type { Node, ScannedObject } from '../json/scanned-object.ts'
import { schemaText } from '../schema-text.ts'
import { SEARCHES } from '../search-size.ts'
import { drop } from './dropped.ts'
import { isStrictSchema } from './strict-schema.ts'
import { customTool } from '../custom-tool.ts'
import { TOOL_SEARCH, TYPED_TOOLS, typedTool } from './tool-forms.ts'
import type { ToolNames } from './tool-names.ts'

/** The types of tools that the provider runs and nobody else can, by how they begin; and their names. */
const PROVIDER_TOOLS = [
  ['code_interpreter', 'tools.code_interpreter'],
  ['computer', 'tools.computer'],
  ['file_search', 'tools.file_search'],
  ['image_generation', 'tools.image_generation'],
  ['mcp', 'tools.mcp'],
  ['programmatic_tool_calling', 'tools.programmatic_tool_calling'],
] as const

const PLACES = ['city', 'country', 'region', 'timezone'] as const

/** The tools of a request, as they are found in `tools` and among the items. */
export class OfferedTools {
  readonly tools: Tool[] = []
  webSearch: WebSearch | undefined
  /** Some tool was left out: it is the provider's own to run. */
  hasDropped = false
  /** Where in the list a tool is, by its name. */
  readonly #places = new Map<string, number>()
  readonly #scan: ScannedObject
  readonly #names: ToolNames
  readonly #dropped: Dropped

  constructor(scan: ScannedObject, names: ToolNames, dropped: Dropped) {
    this.#scan = scan
    this.#names = names
    this.#dropped = dropped
  }

  /** Reads a list of tools; nothing where there is none. Throws `invalid_request` naming the path. */
  read(list: Node | undefined, path: string): void {
    if (list === undefined || this.#scan.kindOf(list) === 'null') return
    const tools = listAt(this.#scan.parse(list), path)
    for (const [index, node] of this.#scan.elements(list).entries())
      this.#readTool(node, fieldsAt(tools[index], `${path}[${index}]`), `${path}[${index}]`)
  }

  #readTool(node: Node, tool: Fields, path: string, namespace?: string): void {
    const type = textAt(tool['type'], `${path}.type`)
    const typed = typedTool(type)
    if (type === 'function') this.#readFunction(node, tool, path, namespace)
    else if (type === 'custom') this.#readCustom(tool, path, namespace)
    else if (type === 'namespace' && namespace === undefined) this.#readNamespace(node, tool, path)
    else if (typed) this.#add({ form: { type: typed, name: typed }, ...TYPED_TOOLS[typed] })
    else if (type === 'tool_search' && tool['execution'] === 'client') this.#readToolSearch(node, tool, path)
    else if (type.startsWith('web_search')) this.webSearch = decodeWebSearch(tool, path)
    else this.#drop(type)
  }

  #readFunction(node: Node, tool: Fields, path: string, namespace: string | undefined): void {
    const name = textAt(tool['name'], `${path}.name`)
    const schema = schemaText(this.#scan, node, 'parameters', path)
    const strict = present(tool['strict'])
    this.#add({
      form: { type: 'function', name, ...(namespace !== undefined && { namespace }) },
      description: optionalText(tool, 'description', path),
      schema,
      strict:
        strict === undefined ? isStrictSchema(schema) || undefined : booleanAt(strict, `${path}.strict`),
    })
  }

  #readCustom(tool: Fields, path: string, namespace: string | undefined): void {
    const name = textAt(tool['name'], `${path}.name`)
    const format = present(tool['format'])
    const fields = format === undefined ? {} : fieldsAt(format, `${path}.format`)
    const grammar = fields['type'] === 'grammar' && {
      syntax: textAt(fields['syntax'], `${path}.format.syntax`),
      definition: textAt(fields['definition'], `${path}.format.definition`),
    }
    this.#add({
      form: { type: 'custom', name, ...(namespace !== undefined && { namespace }) },
      ...customTool(optionalText(tool, 'description', path), grammar || undefined),
    })
  }

  #readNamespace(node: Node, tool: Fields, path: string): void {
    const namespace = textAt(tool['name'], `${path}.name`)
    const list = this.#scan.memberOf(node, 'tools')
    const tools = listAt(tool['tools'], `${path}.tools`)
    for (const [index, inner] of (list === undefined ? [] : this.#scan.elements(list)).entries()) {
      const at = `${path}.tools[${index}]`
      this.#readTool(inner, fieldsAt(tools[index], at), at, namespace)
    }
  }

  #readToolSearch(node: Node, tool: Fields, path: string): void {
    this.#add({
      form: { type: 'tool_search', name: 'tool_search' },
      description: optionalText(tool, 'description', path) ?? TOOL_SEARCH.description,
      schema: schemaText(this.#scan, node, 'parameters', path) ?? TOOL_SEARCH.schema,
    })
  }

  /** A tool that is offered again, as one that was searched for, replaces the earlier one. */
  #add(
    given: Pick<Tool, 'description' | 'schema'> & {
      form: NonNullable<Tool['form']>
      strict?: boolean | undefined
    },
  ): void {
    const { form, description, schema, strict } = given
    const name = this.#names.nameOf(form)
    const isPlain = form.type === 'function' && form.namespace === undefined && form.name === name
    const tool: Tool = {
      name,
      description: description || undefined,
      schema,
      strict,
      ...(!isPlain && { form }),
    }
    const at = this.#places.get(name)
    if (at !== undefined) this.tools[at] = tool
    else this.#places.set(name, this.tools.push(tool) - 1)
  }

  #drop(type: string): void {
    this.hasDropped = true
    const known = PROVIDER_TOOLS.find(([prefix]) => type.startsWith(prefix))
    drop(this.#dropped, type === 'tool_search' ? 'tools.tool_search' : (known?.[1] ?? 'tools.unknown'))
  }
}

function decodeWebSearch(tool: Fields, path: string): WebSearch {
  const place = present(tool['user_location'])
  const fields = place === undefined ? {} : fieldsAt(place, `${path}.user_location`)
  const location: SearchLocation = Object.fromEntries(
    PLACES.map((name) => [name, fields[name]]).filter(([, value]) => typeof value === 'string'),
  )
  return {
    maxUses: enumAt(
      SEARCHES,
      present(tool['search_context_size']) ?? 'medium',
      `${path}.search_context_size`,
    ),
    isOptional: true,
    ...(Object.keys(location).length > 0 && { location }),
  }
}

function optionalText(tool: Fields, key: string, path: string): string | undefined {
  const value = present(tool[key])
  return value === undefined ? undefined : textAt(value, `${path}.${key}`)
}
