import type { FieldType, Stored } from './field-types.ts'

/** Field of a record: everything that the program derives from it. */
export interface Field<V = unknown, C extends Stored = Stored> {
  readonly type: FieldType<V, C>
  /** Column, where it is not called as the field. */
  readonly column?: string
  /** Name in answers, where it is not that of the field. */
  readonly as?: string
  /** Description in answers. */
  readonly about?: string | undefined
  /** Value of a new row that states none. */
  readonly default?: V
  /** Role that sets it over HTTP: the holder of the object, or administrators alone; absent = none. */
  readonly edit?: 'holder' | 'admin'
  /** Whether a new object must state it. */
  readonly isRequired?: true
  /** Whether calls change it, so that the version of the object leaves it out. */
  readonly moves?: true
  /** False = in no answer; `admin` = in answers to administrators alone. */
  readonly shown?: false | 'admin'
  /** Whether it is a secret: in no answer or value of the program, and in the audit log without its value. */
  readonly secret?: true
  /** Whether the audit log has its changes; a text is its name there. */
  readonly audit?: true | string
  /** Whether other nodes are told of its changes, because admission depends on it; `recall` ends leases. */
  readonly admission?: 'heed' | 'recall'
  /** Whether gateway.yaml may declare it; a text says what it expects there. */
  readonly declared?: true | string
  /** Option of the command line: the placeholder of its value, and its help. */
  readonly option?: readonly [value: string, help: string]
  /** Constraints of the column; `part`: of a primary key of several columns. */
  readonly key?: 'primary' | 'part' | 'unique' | `references ${string}.${string}`
}

/** Fields of a record, by name. */
export type Fields = Readonly<Record<string, Field>>

/** Value of a field. */
export type ValueOf<F> = F extends { readonly type: FieldType<infer V, infer _> } ? V : never

/** Name of a field's column. */
type ColumnName<F extends Fields, Name extends keyof F> = F[Name] extends {
  readonly column: infer C extends string
}
  ? C
  : Name

type ColumnOf<F> = F extends { readonly type: FieldType<infer _, infer C> } ? C : never

/** Fields that have a property, such as `edit`. */
export type NamesWith<F extends Fields, Property extends keyof Field> = {
  [Name in keyof F]: F[Name] extends Readonly<Record<Property, unknown>> ? Name : never
}[keyof F]

/** Object of a record: all fields but the secrets. */
export type Values<F extends Fields> = {
  readonly [Name in Exclude<keyof F, NamesWith<F, 'secret'>>]: ValueOf<F[Name]>
}

type PrimaryKey<F extends Fields> = {
  [Name in keyof F]: F[Name] extends { readonly key: 'primary' } ? Name : never
}[keyof F] &
  keyof Values<F>

/** Fields that a new object may lack: those with a default, and the id, which the database makes. */
type Optional<F extends Fields> = PrimaryKey<F> | (NamesWith<F, 'default'> & keyof Values<F>)

/** Object to be created. */
export type NewValues<F extends Fields> = Omit<Values<F>, Optional<F>> & {
  readonly [Name in Optional<F>]?: Values<F>[Name] | (Name extends PrimaryKey<F> ? undefined : never)
}

/** Row of a record. */
export type Row<F extends Fields> = {
  [Name in keyof F as ColumnName<F, Name> & string]: ColumnOf<F[Name]>
}

/** Fields that can be set over HTTP, as they are stored. */
export type Edits<F extends Fields> = { readonly [Name in NamesWith<F, 'edit'>]?: ValueOf<F[Name]> }

/** Row without its secrets. */
export type PlainRow<F extends Fields> = Row<Omit<F, NamesWith<F, 'secret'>>>

/** Column of a record. */
export interface Column extends Field {
  readonly name: string
  readonly field: string
}

/** Record with what is derived from its fields; `parts` are columns that together make other values. */
export interface RecordOf<F extends Fields, P extends Fields> {
  readonly table: string
  readonly fields: F
  readonly parts: P
  /** All columns in the order of the declaration, those of `parts` last. */
  readonly columns: readonly Column[]
  /** Values of the fields that have a default. */
  readonly defaults: Pick<Values<F>, NamesWith<F, 'default'> & keyof Values<F>>
  /** Columns with these values; absent values have none. */
  toRow(values: Partial<Values<F>>): Partial<PlainRow<F>>
  /** Columns of a new row, without its secrets and `parts`. */
  newRow(values: NewValues<F>): PlainRow<F>
  /** Values of a row. */
  fromRow(row: PlainRow<F>): Values<F>
}

/** Declares a record. Lists and conversions are derived once. */
export function record<const F extends Fields, const P extends Fields = {}>(
  table: string,
  fields: F,
  parts?: P,
): RecordOf<F, P> {
  const own = columnsOf(fields)
  const values = own.filter(({ secret }) => !secret)
  const stated = values.filter(({ default: value }) => value !== undefined)
  const defaults = Object.fromEntries(stated.map(({ field, default: value }) => [field, value]))
  const toRow = (given: Readonly<Record<string, unknown>>): Record<string, Stored> => {
    const row: Record<string, Stored> = {}
    for (const { field, name, type } of values) {
      const value = given[field]
      if (value !== undefined) row[name] = encoded(type, value)
    }
    return row
  }
  return {
    table,
    fields,
    parts: parts ?? ({} as P),
    columns: [...own, ...columnsOf(parts ?? {})],
    defaults: defaults as Pick<Values<F>, NamesWith<F, 'default'> & keyof Values<F>>,
    toRow: (given) => toRow(given) as Partial<PlainRow<F>>,
    newRow: (given) => toRow({ ...defaults, ...given }) as PlainRow<F>,
    fromRow(row) {
      const object: Record<string, unknown> = {}
      for (const { field, name, type } of values)
        object[field] = decoded(type, (row as Readonly<Record<string, Stored>>)[name] as Stored)
      return object as Values<F>
    },
  }
}

/** Names of the columns whose field has a property, with one of these values where some are given. */
export function columnsWith(
  { columns }: { readonly columns: readonly Column[] },
  property: keyof Field,
  ...oneOf: readonly unknown[]
): string[] {
  return columns
    .filter((one) => one[property] !== undefined && (oneOf.length === 0 || oneOf.includes(one[property])))
    .map(({ name }) => name)
}

/** Names of the columns with texts. */
export function textColumns({ columns }: { readonly columns: readonly Column[] }): string[] {
  return columns.filter(({ type }) => type.column === 'text').map(({ name }) => name)
}

/** Value of a column. */
export function encoded<V>(type: FieldType<V>, value: V): Stored {
  return value === null || !type.encode ? (value as Stored) : type.encode(value)
}

/** Value that a column has. */
export function decoded<V>(type: FieldType<V>, column: Stored): V {
  return column === null || !type.decode ? (column as V) : type.decode(column)
}

function columnsOf(fields: Fields): Column[] {
  return Object.entries(fields).map(([field, one]) => ({ ...one, field, name: one.column ?? field }))
}

/**
 * Returns the function that lists the values of these columns in their order, defaults for those that an
 * object lacks. Every call needs it: its loop reads lists of one shape.
 */
export function listerOf(columns: readonly Column[]): (given: object, values?: Stored[]) => Stored[] {
  const fields = columns.map(({ field }) => field)
  const types = columns.map(({ type }) => (type.encode ? type : undefined))
  const defaults = columns.map(({ default: value }) => value)
  return (given, values = []) => {
    for (let i = 0; i < fields.length; i += 1) {
      const value = (given as Readonly<Record<string, unknown>>)[fields[i]!] ?? defaults[i]
      const type = types[i]
      values.push(type ? encoded(type, value) : (value as Stored))
    }
    return values
  }
}
