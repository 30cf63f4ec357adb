/** A group of entries with a common maximum size. */
interface KeptShare {
  /** Whether all users share one maximum. Then the size of each user's entries is counted as well. */
  readonly isCommon: boolean
  /** Whether a new entry is refused if there is no room for it; otherwise the oldest entries are removed. */
  readonly refuses: boolean
}

/** The shares, by their names in `kept_sums`. */
export const KEPT_SHARES = {
  /** What is kept for one user: `options.keep_bytes`. */
  user: { isCommon: false, refuses: false },
  /** The answer cache: `options.cache.most`. */
  cache: { isCommon: true, refuses: false },
  /** Files of one user: `options.files.most`. */
  files: { isCommon: false, refuses: true },
} as const satisfies Readonly<Record<string, KeptShare>>
export type KeptShareName = keyof typeof KEPT_SHARES

/** A kind of what is kept in the database, encrypted, until it expires. */
interface KeptKindRules {
  /** The share in which its bytes count; null if they count nowhere. */
  readonly share: KeptShareName | null
  /** Who finds an entry by its key: only the user it belongs to, or everybody who can compute the key. */
  readonly readers: 'owner' | 'everybody'
  /** The limit of free disk space below which it is not kept: `FreeSpaceMonitor`. */
  readonly room: StoredDataKind
  /** Whether its contents are kept apart from the database, in an `ObjectPlace`, if there is one. */
  readonly isLarge?: true
  /** Table that has a row with the key of each entry as its `id`, which is removed with the entry. */
  readonly recordTable?: 'stored_responses'
}

/** Kinds of data with different limits of free disk space. */
export type StoredDataKind = 'responses' | 'signatures'

/**
 * What is kept, by kind. The parts of a content are independent: each is encrypted for its place, and can be
 * read without the others. The row of an entry is encrypted together with the number of its parts.
 */
export const KEPT_KINDS = {
  /** Input and output of a converted response, by the id of the response. */
  response: {
    share: 'user',
    readers: 'owner',

    room: 'responses',
    recordTable: 'stored_responses',
  },
  /** Signed part of a reply, by an HMAC of its user and of what the client sends back. */
  signature: { share: 'user', readers: 'owner', room: 'signatures' },
  /** Answer to a call with an idempotency key, by an HMAC of that key and the API key. */
  idempotency: { share: 'user', readers: 'owner', room: 'responses' },
  /** Answer for equal requests, by an HMAC of the request and of who shares it. */
  cache: { share: 'cache', readers: 'everybody', room: 'responses' },
  /** Uploaded file or result of a batch, by the id of the file. */
  file: { share: 'files', readers: 'owner', room: 'responses', isLarge: true },
  /** Batch of requests, by its id. */
  batch: { share: null, readers: 'owner', room: 'responses' },
  /** Batch that has not ended, or of which not everything is removed that only its work needs, by its id. */
  batch_open: { share: null, readers: 'owner', room: 'responses' },
  /** Wish of the user to cancel a batch, by its id. */
  batch_cancel: { share: null, readers: 'owner', room: 'responses' },
  /** Bodies of the checked lines of a batch, by its id. */
  batch_input: { share: 'files', readers: 'owner', room: 'responses', isLarge: true },
  /** What is known of some consecutive lines without their bodies, by the id of the batch and the number of the first one. */
  batch_heads: { share: 'files', readers: 'owner', room: 'responses' },
  /** Result of a line of a batch with the row that it is charged by, by the id of the batch and the number of the line. */
  batch_line: { share: 'files', readers: 'owner', room: 'responses' },
  /** Batch at a provider, with what is needed to ask for it, by the id of the user's batch and a number. */
  batch_part: { share: null, readers: 'owner', room: 'responses' },
  /** The bytes that such a batch is made of, by the same key. */
  batch_part_lines: { share: null, readers: 'owner', room: 'responses', isLarge: true },
  /** What guards have to know when the answer to a line comes, by the id of the batch and the number of the line. */
  batch_line_state: { share: null, readers: 'owner', room: 'responses' },
  /** Results of a message batch, by its id. */
  batch_results: { share: 'files', readers: 'owner', room: 'responses', isLarge: true },
  /** Content whose entry is not written yet, or whose removal has begun, by the id of the content. */
  incomplete: { share: null, readers: 'owner', room: 'responses' },
  /** The same of a content in an `ObjectPlace`. Its row stays until its objects are removed. */
  incomplete_objects: { share: null, readers: 'owner', room: 'responses' },
} as const satisfies Readonly<Record<string, KeptKindRules>>
export type KeptKind = keyof typeof KEPT_KINDS

/** Kinds of answers that are given again for the same or an equal request. */
export type AnswerKind = Extract<KeptKind, 'idempotency' | 'cache'>

/** Kinds that the end of a batch removes. Until then they stay even if its user is deleted, because what it finished is charged. */
export const KINDS_OF_OPEN_BATCHES: ReadonlySet<KeptKind> = new Set([
  'batch_open',
  'batch_input',
  'batch_heads',
  'batch_line',
  'batch_line_state',
  'batch_part',
  'batch_part_lines',
] as const)

/** The rules of a kind. */
export function rulesOf(kind: KeptKind): KeptKindRules {
  return KEPT_KINDS[kind]
}

/**
 * The shares in which rows of a kind may count. Nodes of earlier versions count those of `batch_line` in none, and such rows
 * stay as they are.
 */
export function sharesOf(kind: KeptKind): readonly string[] {
  const { share } = rulesOf(kind)
  return share === null ? [''] : [share, '']
}

/** Everything about what is kept under a key except its content. */
export interface KeptFacts {
  readonly kind: KeptKind
  readonly key: string
  readonly userId: number
  /** Id of the API key of the call, and the public name of its model; 0 and empty if they do not matter. */
  readonly tokenId: number
  readonly model: string
  /** Facts in a format that only the kind defines; stored encrypted. */
  readonly facts: string
  /** Creation and expiry, in Unix milliseconds. */
  readonly createdMs: number
  readonly expiresMs: number
}

/** An entry as it is found. */
export interface KeptEntry extends KeptFacts {
  /** Id of its content, which is new each time the entry is replaced. */
  readonly contentId: string
  /** Number of parts of its content; in an `ObjectPlace`, number of objects. */
  readonly parts: number
  /** Bytes that count in its share. For an entry with parts, this is the size of its content. */
  readonly bytes: number
  /** The key of a content in an `ObjectPlace`. */
  readonly objectKey?: string
}

/** How many entries of a kind a user may have. */
export interface KeptBound {
  readonly kind: KeptKind
  readonly userId: number
  readonly most: number
}

/** Which entries are removed: those that match all given fields. */
export interface KeptFilter {
  readonly kind: KeptKind
  readonly key?: string | undefined
  /** The first and the last key, instead of one. */
  readonly keys?: { readonly from: string; readonly to: string } | undefined
  /** Keys of entries that stay. */
  readonly except?: readonly string[] | undefined
  readonly userId?: number | undefined
  readonly tokenId?: number | undefined
  readonly model?: string | undefined
}

/** Size of a share. */
export interface KeptSum {
  readonly share: KeptShareName
  /** The user; 0 for the whole of a common share. */
  readonly userId: number
  readonly bytes: number
}

/** The owner of the whole of a common share in `kept_sums`; no user has this id. */
export const ALL_USERS = 0

/** Maximum size of a part in bytes. It is small, because charges of calls wait for the commit that writes it. */
export const KEPT_PART_BYTES = 262_144
/** Maximum bytes of a content in one object: large enough for few requests, small enough for memory. */
export const OBJECT_BYTES = 1_048_576
/** The same of a part of an object, which can be read without the others. Lines are read in any order. */
export const OBJECT_PART_BYTES = 16_384

const OBJECTS = 'objects-'

/** The id of a content in an `ObjectPlace`. */
export function objectContentId(id: string): string {
  return OBJECTS + id
}

/** Whether a content is in an `ObjectPlace`. */
export function isInObjects({ contentId }: Pick<KeptEntry, 'contentId'>): boolean {
  return contentId.startsWith(OBJECTS)
}

/** Size in bytes of all parts of a content except the last one. */
export function partBytesOf(entry: Pick<KeptEntry, 'contentId'>): number {
  return isInObjects(entry) ? OBJECT_PART_BYTES : KEPT_PART_BYTES
}
