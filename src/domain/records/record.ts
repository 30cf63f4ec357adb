import { type FieldType, unchangedValue, type Stored } from './field-types.ts'

/** Field of a record; everything that the program needs for the field is derived from it. */
export interface Field<V = unknown, C extends Stored = Stored, J = unknown> {
  readonly type: FieldType<V, C, J>
  /** Column, if its name differs from that of the field. */
  readonly column?: string
  /** Name in responses, if it differs from that of the field. */
  readonly as?: string
  /** Description in the API's documentation. */
  readonly about?: string | undefined
  /** Value of a new row that does not state one. */
  readonly default?: V
  /** Who may set it over HTTP: the holder of the object, or only administrators; if absent, no one. */
  readonly edit?: 'holder' | 'admin'
  /** Whether it is required when an object is created. */
  readonly isRequired?: true
  /** Whether calls change it; the version of the object then leaves it out. */
  readonly moves?: true
  /** `false`: in no response; `admin`: only in responses to administrators. */
  readonly shown?: false | 'admin'
  /**
   * A secret: not in responses, and without its value in the audit log. With `true`, objects of the program
   * do not contain it either.
   */
  readonly secret?: true | 'held'
  /** Whether the audit log records its changes; a text is its name there. */
  readonly audit?: true | string
  /**
   * Whether other nodes are notified of its changes, because admission depends on it; `recall` also ends
   * leases.
   */
  readonly admission?: 'heed' | 'recall'
  /** Whether gateway.yaml may declare it; a text states what is expected there. */
  readonly declared?: true | string
  /** Option of the command line: the placeholder of its value, and its help text. */
  readonly option?: readonly [value: string, help: string]
  /** Constraints of the column; `part` belongs to a primary key of several columns. */
  readonly key?: 'primary key' | 'part' | 'unique' | `references ${string}`
}

/** Fields of a record, by name. */
export type Fields = Readonly<Record<string, Field>>

/** Value of a field; one whose default is absence may be absent. */
export type ValueOf<F extends Pick<Field, 'type'>> =
  | ReturnType<F['type']['decode']>
  | (F extends { readonly default: undefined } ? undefined : never)

/** Value of a field in JSON. */
export type JsonOf<F extends Pick<Field, 'type'>> = ReturnType<F['type']['toJson']>

/** Fields that have a property such as `edit`, optionally with one of these values. */
export type NamesWith<F extends Fields, Property extends keyof Field, Value = unknown> = {
  [Name in keyof F]: F[Name] extends Readonly<Record<Property, Value>> ? Name : never
}[keyof F]

/** Object of a record: all fields except the secrets that objects do not contain. */
export type Values<F extends Fields> = {
  readonly [Name in Exclude<keyof F, NamesWith<F, 'secret', true>>]: ValueOf<F[Name]>
}

/** Fields that the database fills in: those with a default, and the id. */
export type FilledFields<F extends Fields> = {
  [Name in keyof F]: F[Name] extends { default: unknown } | { key: 'primary key' } ? Name : never
}[keyof F]

/** Object to be created; if the id is undefined, the next free one is used. */
export type NewValues<F extends Fields> = Omit<Values<F>, FilledFields<F>> & {
  readonly [Name in FilledFields<F> & keyof Values<F>]?:
    | Values<F>[Name]
    | (F[Name] extends { readonly key: unknown } ? undefined : never)
}

/** Row of a record. */
export type Row<F extends Fields> = {
  [Name in keyof F as F[Name] extends { readonly column: infer C extends string }
    ? C
    : Name & string]: ReturnType<F[Name]['type']['encode']>
}

/** Fields that can be set over HTTP, in their stored form. */
export type Edits<F extends Fields> = { readonly [Name in NamesWith<F, 'edit'>]?: ValueOf<F[Name]> }

/** Column of a record. */
export type Column = Field & Readonly<Record<'name' | 'field', string>>

/** The columns of a record. */
export type RecordColumns = Readonly<Record<'columns', readonly Column[]>>

/** Declares a record. `parts` are columns that are combined into other values. */
export function declareRecord<const F extends Fields, const P extends Fields = {}>(
  table: string,
  fields: F,
  parts: P = {} as P,
) {
  type PlainRow = Row<Omit<F, NamesWith<F, 'secret', true>>>
  const own = columnsOf(fields)
  const values = own.filter(({ secret }) => secret !== true)
  const filled = values.filter(({ default: value }) => value !== undefined)
  const defaults = Object.fromEntries(filled.map(({ field, default: value }) => [field, value]))
  return {
    table,
    fields,
    parts,
    /** All columns in the order of declaration, those of `parts` last. */
    columns: [...own, ...columnsOf(parts)],
    /** Values of the fields that have a default. */
    defaults: defaults as Pick<Values<F>, NamesWith<F, 'default'> & keyof Values<F>>,
    /** Converts values to columns; absent values have none. */
    toRow: (given: Partial<Values<F>>) => rowOf(values, given) as Partial<PlainRow>,
    /** Columns of a new row, without its secrets and `parts`. */
    newRow: (given: NewValues<F>) => rowOf(values, { ...defaults, ...given }) as PlainRow,
    /** Values of a row. */
    fromRow(row: PlainRow): Values<F> {
      const object: Record<string, unknown> = {}
      const stored = row as Readonly<Record<string, Stored>>
      for (const { field, name, type } of values) object[field] = type.decode(stored[name]!)
      return object as Values<F>
    },
  }
}

function columnsOf(fields: Fields): Column[] {
  return Object.entries(fields).map(([field, one]) => ({ ...one, field, name: one.column ?? field }))
}

function rowOf(columns: readonly Column[], given: Readonly<Record<string, unknown>>): object {
  const present = columns.filter(({ field }) => given[field] !== undefined)
  return Object.fromEntries(present.map(({ field, name, type }) => [name, type.encode(given[field])]))
}

/** The fields that have a property, with the given value if there is one. */
export function fieldsWith<const F extends Fields, P extends keyof Field, const V = unknown>(
  fields: F,
  property: P,
  value?: V,
): Pick<F, NamesWith<F, P, V>> {
  const isEqual = (given: unknown): boolean => given !== undefined && (value ?? given) === given
  return Object.fromEntries(Object.entries(fields).filter(([, one]) => isEqual(one[property]))) as never
}

/**
 * Returns a function that lists the values of these columns in order, with defaults for missing ones. Every
 * call uses it, so its loop reads lists of one shape.
 */
export function valueListerOf(columns: readonly Column[]): (given: object, values?: Stored[]) => Stored[] {
  const members = columns.map(({ field, type, default: usual }) => {
    return { field, usual, encoder: type.encode === unchangedValue ? undefined : type }
  })
  return (given, values = []) => {
    for (const { field, usual, encoder } of members) {
      const value = (given as Readonly<Record<string, unknown>>)[field] ?? usual
      values.push(encoder ? encoder.encode(value) : (value as Stored))
    }
    return values
  }
}
