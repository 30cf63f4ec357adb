/** A field that two people changed to different values. */
export interface Difference {
  readonly label: string
  readonly mine: string
  readonly theirs: string
}

/** The words for the values of a field that are chosen: by value, also for each one of a list, or for the whole value. */
export type Words<Typed extends object> = {
  readonly [Field in keyof Typed]?: Readonly<Record<string, string>> | ((value: Typed[Field]) => string)
}

/** Three versions of a form: as it was opened, as it is typed now, and as another user has saved it. */
interface Versions<Typed extends object> {
  readonly base: Typed
  readonly mine: Typed
  readonly theirs: Typed
}

/** The result of merging two edits of one object. */
interface MergedEdit<Typed extends object> {
  /** The saved values, with the fields that this user has changed. */
  readonly merged: Typed
  /** The fields that both users have changed, to different values. */
  readonly collisions: readonly (keyof Typed)[]
}

/** Merges two edits of one object field by field. */
export function mergeEdits<Typed extends object>({ base, mine, theirs }: Versions<Typed>): MergedEdit<Typed> {
  const fields = Object.keys(mine) as (keyof Typed)[]
  const changed = fields.filter((field) => !isSame(mine[field], base[field]))
  return {
    merged: { ...theirs, ...Object.fromEntries(changed.map((field) => [field, mine[field]])) },
    collisions: changed.filter(
      (field) => !isSame(theirs[field], base[field]) && !isSame(mine[field], theirs[field]),
    ),
  }
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}

/** The fields that differ between two versions of a form, with their labels. */
export function differencesOf<Typed extends object>(
  labels: Readonly<Partial<Record<keyof Typed, string>>>,
  mine: Typed,
  theirs: Typed,
  fields: readonly (keyof Typed)[] = Object.keys(labels) as (keyof Typed)[],
  words: Words<Typed> = {},
): readonly Difference[] {
  const shown = <Field extends keyof Typed>(field: Field, value: Typed[Field]): string => {
    const ofField = words[field] ?? {}
    return typeof ofField === 'function' ? ofField(value) : textOf(value, ofField)
  }
  return fields
    .map((field) => ({
      label: labels[field] ?? String(field),
      mine: shown(field, mine[field]),
      theirs: shown(field, theirs[field]),
    }))
    .filter(({ mine: one, theirs: other }) => one !== other)
}

// Fields of forms are texts, numbers, or lists of texts or of rows of texts.
function textOf(value: unknown, words: Readonly<Record<string, string>>): string {
  if (Array.isArray(value)) return value.map((one) => textOf(one, words)).join(', ')
  if (typeof value === 'object' && value !== null) return Object.values(value).join(': ')
  const text = String(value)
  return (Object.hasOwn(words, text) ? words[text] : undefined) ?? text
}
