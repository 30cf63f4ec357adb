/** A field that two people changed to different values. */
export interface Difference {
  readonly label: string
  readonly mine: string
  readonly theirs: string
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
): readonly Difference[] {
  return fields
    .map((field) => ({
      label: labels[field] ?? String(field),
      mine: textOf(mine[field]),
      theirs: textOf(theirs[field]),
    }))
    .filter(({ mine: one, theirs: other }) => one !== other)
}

// Fields of forms are texts, numbers, or lists of texts or of rows of texts.
function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(textOf).join(', ')
  if (typeof value === 'object' && value !== null) return Object.values(value).join(': ')
  return `${value as string | number}`
}
