import { NameTable } from './name-table.ts'
import { KIND, KINDS, type Kind, type Members, OWNER, OWNERS, type Owner, type Place } from './vocabulary.ts'

/** A place, prepared for the walk. */
export interface CompiledPlace {
  /** Number of the kind of a string; that of `undescribed` if only an object may stand here. */
  readonly kind: number
  /** Whether the kind also covers whole objects. */
  readonly coversObjects: boolean
  /** The members of an object; undefined if an object may not stand here, or if its keys are chosen by users. */
  readonly table: CompiledTable | undefined
  /** Place of the members of an object whose keys users choose. */
  readonly values: CompiledPlace | undefined
  /** Number of the owner; -1 for that of the object around the place. */
  readonly owner: number
}

/** The members of an object, prepared for the walk. */
export interface CompiledTable {
  readonly id: number
  readonly members: NameTable<CompiledPlace>
  /** Whether a member of the object says whose it is. */
  readonly hasRole: boolean
  /** Tables that are used instead of this one, by the type that the object states. */
  readonly variants: NameTable<CompiledTable> | undefined
  /** Table that is used instead of this one if the member with this name is true. */
  readonly flagged: { readonly name: Buffer; readonly table: CompiledTable } | undefined
}

/** Describes the documents of a dialect: the kind and the owner of each value, by its place. */
export interface Shape<Table extends string = string> {
  readonly root: CompiledTable
  /** The table that describes the document itself. Requests are the provider's, answers and events the model's. */
  readonly rootName: RootName
  /** Names and places of all tables, as they were written. */
  readonly tables: Readonly<Record<string, Members<string>>>
  /** Returns the number of a table in outlines. Each variant of a table has a separate number. */
  tableId(name: Table): number
}

/** Kinds that cover whole objects, with all keys and values in them. */
const COVERING: ReadonlySet<Kind> = new Set([
  'arguments',
  'input',
  'result',
  'mark',
  'tokens',
  'id',
  'term',
  'data',
])
/** Owners that follow from the kind. */
const OWNER_OF_KIND: ReadonlyMap<Kind, Owner> = new Map([
  ['arguments', 'model'],
  ['input', 'model'],
  ['reasoning', 'model'],
  ['result', 'tool'],
])

/** The table that describes a whole document. */
export type RootName = 'Request' | 'Answer' | 'Event'

/** Returns all spellings of a member's name. */
type SpellingsOf = (name: string) => readonly string[]

type BaseOf<Name extends string> = Exclude<Name, `${string}:${string}` | `${string}?${string}`>

/**
 * Describes a shape by its tables. The document itself is described by `rootName`. A table `Block:thinking` has the members
 * of a `Block` whose `type` is `thinking`, as far as they differ; `Part?thought` those of a `Part` whose `thought` is true.
 */
export function defineShape<const Name extends string>(
  tables: Readonly<Record<Name, Members<NoInfer<BaseOf<Name>>>>>,
  spellingsOf: SpellingsOf = (name) => [name],
  rootName: RootName = 'Request',
): Shape<Name> {
  const ids = new Map<string, number>(Object.keys(tables).map((name, id) => [name, id]))
  let root: CompiledTable | undefined
  return {
    // Compiled for the first document, because most processes read documents of few shapes.
    get root() {
      return (root ??= tableNamed(rootName, compileTables(tables, spellingsOf)))
    },
    rootName,
    tables,
    tableId: (name) => tableNamed(name, ids),
  }
}

function compileTables(
  written: Readonly<Record<string, Members<string>>>,
  spellingsOf: SpellingsOf,
): ReadonlyMap<string, CompiledTable> {
  const names = Object.keys(written)
  const compiled = new Map<string, MutableTable>()
  for (const [id, name] of names.entries()) compiled.set(name, emptyTable(id))
  for (const [name, table] of compiled) {
    const [base = '', sign, value] = name.split(/([:?])/)
    const members = { ...written[base], ...written[name] }
    table.hasRole = Object.values(members).includes('role')
    table.members = new NameTable(
      new Map(
        Object.entries(members).flatMap(([member, place]) => {
          const compiledPlace = compilePlace(place, compiled)
          return spellingsOf(member).map((spelling) => [spelling, compiledPlace] as const)
        }),
      ),
    )
    const around = tableNamed(base, compiled)
    if (sign === '?') around.flagged = { name: Buffer.from(value ?? ''), table }
  }
  for (const [name, table] of compiled) {
    const variants = names.filter((one) => one.startsWith(`${name}:`))
    if (variants.length > 0)
      table.variants = new NameTable(
        new Map(variants.map((one) => [one.slice(name.length + 1), tableNamed(one, compiled)])),
      )
  }
  return compiled
}

type MutableTable = { -readonly [Key in keyof CompiledTable]: CompiledTable[Key] }

function emptyTable(id: number): MutableTable {
  return { id, members: new NameTable(new Map()), hasRole: false, variants: undefined, flagged: undefined }
}

function tableNamed<Table>(name: string, tables: ReadonlyMap<string, Table>): Table {
  const table = tables.get(name)
  if (!table) throw new Error(`the shape has no table '${name}'`)
  return table
}

/** A place in its parts: `text | Part of user`, `{Schema}`. The groups are the brace, the kind, the table and the owner. */
export const PLACE = /^(\{)?([a-z]+)?(?: \| )?([A-Z]\w*)?\}?(?: of ([a-z]+))?$/

function compilePlace(place: Place<string>, tables: ReadonlyMap<string, CompiledTable>): CompiledPlace {
  const [, isMap, kind, table, owner] = PLACE.exec(place) ?? []
  if (kind === undefined && table === undefined) throw new Error(`the place '${place}' cannot be read`)
  const stated = KINDS.find((one) => one === kind)
  const implied = stated && OWNER_OF_KIND.get(stated)
  const whose = OWNERS.find((one) => one === owner) ?? implied
  const content: CompiledPlace = {
    kind: KIND[stated ?? 'undescribed'],
    coversObjects: stated !== undefined && table === undefined && COVERING.has(stated),
    table: table === undefined ? undefined : tableNamed(table, tables),
    values: undefined,
    owner: whose === undefined ? -1 : OWNER[whose],
  }
  if (isMap === undefined) return content
  return { ...content, kind: KIND.undescribed, coversObjects: false, table: undefined, values: content }
}
