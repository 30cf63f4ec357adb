/**
 * What a string of a request, an answer or an event can be. Every string is exactly one of these. Numbers, true and
 * false have the kind of their member too.
 */
export const KINDS = [
  /** An object, a list, or the name of a member that the protocol defines. */
  'structure',
  /** A text that users or models write. Within reasoning it is reasoning, within a result it is a result. */
  'text',
  /** A text in which a model reasons. */
  'reasoning',
  /** The input of a tool, which a model writes: JSON in a string, or an object with any keys. */
  'arguments',
  /** The input of a tool as a plain text, which a model writes: of a custom tool, or code. */
  'input',
  /** The output of a tool: a text, or an object with any keys. */
  'result',
  /** An encrypted text, which the model reads as a part of the prompt. */
  'sealed',
  /** Proves that a model wrote the values beside it. The model does not read it. */
  'signature',
  /** The bytes of an image, document or recording, in base64 or as a `data:` URL. */
  'media',
  /** The URL of media, which may be a `data:` URL. */
  'address',
  /** A mark of the prompt cache: where a prefix ends, and how long it is kept. */
  'mark',
  /** A repetition, token by token, of a text that the document also contains as a whole. */
  'tokens',
  /** Identifies something at the provider, or in the same conversation. */
  'id',
  /** A name that a user chose: of a tool, of a property of a schema. */
  'name',
  /** The role of the author of a turn. */
  'role',
  /** A word of the protocol, or an object of such words. */
  'term',
  /** A number, true or false. A string in its place is not described. */
  'number',
  /** An object whose keys users choose, or any value in it. */
  'data',
  /** A value that the shape does not describe. A model may read it, so guards check it like a text. */
  'undescribed',
] as const

export type Kind = (typeof KINDS)[number]

/** Who wrote a value, or for whom it is. */
export const OWNERS = [
  /** Settings for the provider or the gateway, or values that they report. Not a part of the prompt. */
  'provider',
  /** Instructions of the application. */
  'system',
  'user',
  'model',
  'tool',
  /** Definitions of tools and formats, which the model reads as JSON. */
  'program',
] as const

export type Owner = (typeof OWNERS)[number]

/** The numbers of the kinds, as they are in an outline. */
export const KIND = numbered(KINDS)
/** The numbers of the owners, as they are in an outline. */
export const OWNER = numbered(OWNERS)

function numbered<Name extends string>(names: readonly Name[]): Readonly<Record<Name, number>> {
  return Object.fromEntries(names.map((name, index) => [name, index])) as Record<Name, number>
}

type Described = Exclude<Kind, 'structure' | 'undescribed'>

/**
 * What stands in a place: a kind, an object of a table, either of them (`text | Part`), or an object whose keys users
 * choose (`{Schema}`). Lists are not stated: the elements of a list, at any depth, stand in the place of the list.
 */
type Content<Table extends string> = Described | Table | `${Described} | ${Table}`

/** What stands in a place, and whose it is if that differs from the object around it: `Tool of program`. */
export type Place<Table extends string> =
  | Content<Table>
  | `{${Content<Table>}}`
  | `${Content<Table> | `{${Content<Table>}}`} of ${Owner}`

/** The members of an object, by name. */
export type Members<Table extends string> = Readonly<Record<string, Place<Table>>>
