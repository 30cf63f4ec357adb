/** A field that two people changed to different values. */
export interface Difference {
  readonly label: string
  readonly mine: string
  readonly theirs: string
}

/** The fields, by their labels, that differ between two versions of a form. */
export function differencesOf<Typed extends object>(
  labels: Readonly<Partial<Record<keyof Typed, string>>>,
  mine: Typed,
  theirs: Typed,
): readonly Difference[] {
  return (Object.keys(labels) as (keyof Typed)[])
    .map((field) => ({
      label: labels[field] ?? '',
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
