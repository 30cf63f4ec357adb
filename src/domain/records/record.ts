import { type FieldType, unchangedValue, type Stored } from './field-types.ts'

/**
 * A field of a record. Its database column, its JSON form, its validation and its documentation are derived
 * from this.
 */
export interface Field<V = unknown, C extends Stored = Stored, J = unknown> {
  readonly type: FieldType<V, C, J>
  /** Name of the database column, if it differs from that of the field. */
  readonly column?: string
  /** Name in API responses, if it differs from that of the field. */
  readonly as?: string
  /** Description in the API's documentation. */
  readonly about?: string | undefined
  /** Value in a new row if none is given. */
  readonly default?: V
  /**
   * Who may change the field over HTTP: the owner of the object, or only administrators; if absent, nobody.
   * Requests about tokens accept only fields with `holder`.
   */
  readonly edit?: 'holder' | 'admin'
  /** Whether the field is required when an object is created. */
  readonly isRequired?: true
  /** Set if calls change the field. It is then not part of the object's version, which only edits change. */
  readonly moves?: true
  /** `false`: in no response; `admin`: only in responses to administrators. */
  readonly shown?: false | 'admin'
  /**
   * Set for a secret, which responses and the audit log never show. `held`: objects in the program contain
   * it; `true`: they do not.
   */
  readonly secret?: true | 'held'
  /** Set if the audit log records changes of the field; a text is the field's name in the log. */
  readonly audit?: true | string
  /**
   * Set if other nodes must learn of changes, because the decision to admit a call depends on the field.
   * `recall` also takes back quota that was leased to nodes.
   */
  readonly admission?: 'heed' | 'recall'
  /** Set if gateway.yaml may declare the field; a text describes the expected value in error messages. */
  readonly declared?: true | string
  /** Set if the command line has an option for the field: the placeholder of its value, which flags do not have, and its help text. */
  readonly option?: readonly [value: string, help: string]
  /** Constraints of the database column; `part` means that it belongs to a primary key of several columns. */
  readonly key?: 'primary key' | 'part' | 'unique' | `references ${string}`
}

/** Fields of a record, by name. */
export type Fields = Readonly<Record<string, Field>>

/** The type of a field's value; it includes undefined if the default is undefined. */
export type ValueOf<F extends Pick<Field, 'type'>> =
  | ReturnType<F['type']['decode']>
  | (F extends { readonly default: undefined } ? undefined : never)

/** The type of a field's value in JSON. */
export type JsonOf<F extends Pick<Field, 'type'>> = ReturnType<F['type']['toJson']>

/** Names of the fields that have a property such as `edit`, optionally with a certain value. */
export type FieldNamesWith<F extends Fields, Property extends keyof Field, Value = unknown> = {
  [Name in keyof F]: F[Name] extends Readonly<Record<Property, Value>> ? Name : never
}[keyof F]

/**
 * The object in the program that a record describes: all fields except secrets that objects do not contain.
 */
export type Values<F extends Fields> = {
  readonly [Name in Exclude<keyof F, FieldNamesWith<F, 'secret', true>>]: ValueOf<F[Name]>
}

/** Names of the fields that need not be given for a new row: those with a default, and the id. */
export type FieldsWithDefault<F extends Fields> = {
  [Name in keyof F]: F[Name] extends { default: unknown } | { key: 'primary key' } ? Name : never
}[keyof F]

/** An object to be created. If its id is undefined, the next free one is used. */
export type NewValues<F extends Fields> = Omit<Values<F>, FieldsWithDefault<F>> & {
  readonly [Name in FieldsWithDefault<F> & keyof Values<F>]?:
    | Values<F>[Name]
    | (F[Name] extends { readonly key: unknown } ? undefined : never)
}

/** A database row of a record. */
export type Row<F extends Fields> = {
  [Name in keyof F as F[Name] extends { readonly column: infer C extends string }
    ? C
    : Name & string]: ReturnType<F[Name]['type']['encode']>
}

/** The fields that can be changed over HTTP. */
export type Edits<F extends Fields> = { readonly [Name in FieldNamesWith<F, 'edit'>]?: ValueOf<F[Name]> }

/** A database column of a record. */
export type Column = Field & Readonly<Record<'name' | 'field', string>>

/** The database columns of a record. */
export type RecordColumns = Readonly<Record<'columns', readonly Column[]>>

/**
 * Declares a record of a database table. `parts` are columns that `fromRow` does not convert: several of them
 * together form one value of the object.
 */
export function declareRecord<const F extends Fields, const P extends Fields = {}>(
  table: string,
  fields: F,
  parts: P = {} as P,
) {
  type PlainRow = Row<Omit<F, FieldNamesWith<F, 'secret', true>>>
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
    defaults: defaults as Pick<Values<F>, FieldNamesWith<F, 'default'> & keyof Values<F>>,
    /** Converts an object to database columns; absent values give no columns. */
    toRow: (given: Partial<Values<F>>) => rowOf(values, given) as Partial<PlainRow>,
    /** The database columns of a new row, without secrets and `parts`. */
    newRow: (given: NewValues<F>) => rowOf(values, { ...defaults, ...given }) as PlainRow,
    /** Converts a database row to an object. */
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

/**
 * Returns the fields of a record whose declaration has a property such as `edit`, optionally with a certain
 * value.
 */
export function fieldsWith<const F extends Fields, P extends keyof Field, const V = unknown>(
  fields: F,
  property: P,
  value?: V,
): Pick<F, FieldNamesWith<F, P, V>> {
  const isEqual = (given: unknown): boolean => given !== undefined && (value ?? given) === given
  return Object.fromEntries(Object.entries(fields).filter(([, one]) => isEqual(one[property]))) as never
}

/**
 * Returns a function that lists an object's values in the order of the columns, with defaults for missing
 * ones. Every call uses that function, so it is prepared to run fast.
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
