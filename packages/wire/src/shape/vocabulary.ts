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
  /** A proof that a model wrote what stands beside it. The model does not read it. */
  'signature',
  /** The bytes of an image, document or recording, in base64 or as a `data:` URL. */
  'media',
  /** Where media are: a URL, which may be a `data:` URL. */
  'address',
  /** A mark of the prompt cache: where a prefix ends, and how long it is kept. */
  'mark',
  /** A text that stands elsewhere, once more, token by token. */
  'tokens',
  /** Identifies something at the provider, or in the same conversation. */
  'id',
  /** A name that a user chose: of a tool, of a property of a schema. */
  'name',
  /** Whose turn this is. */
  'role',
  /** A word of the protocol, or an object of such words. */
  'term',
  /** A number, true or false. A string in its place is not described. */
  'number',
  /** An object whose keys users choose, or any value in it. */
  'data',
  /** What the shape does not describe. A model may read it, so that guards check it like a text. */
  'undescribed',
] as const

export type Kind = (typeof KINDS)[number]

/** Whose a value is: who wrote it, or who reads it. */
export const OWNERS = [
  /** It tells the provider or the gateway what to do, or comes from it. It is not a part of the prompt. */
  'provider',
  /** Instructions of the one who deploys the model. */
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
