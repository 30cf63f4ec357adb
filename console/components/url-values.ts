/** A value of a filter as a parameter of the page's URL. */
export function valueToUrlText(value: string): string {
  return value.replaceAll('%', '%25').replaceAll(',', '%2C')
}

/**
 * Joins several values to one parameter of the page's URL, separated by commas; undefined if there are none.
 */
export function valuesToUrlText(values: readonly string[]): string | undefined {
  if (values.length === 0) return undefined
  return values.map(valueToUrlText).join(',')
}

/** The values in a parameter of the page's URL. */
export function valuesOfUrlText(text: string | undefined): readonly string[] {
  return (text ?? '')
    .split(',')
    .filter((part) => part !== '')
    .map((part) => part.replaceAll('%2C', ',').replaceAll('%25', '%'))
}

const ID = /^#\d+$/

/** An API key as a parameter of the page's URL: by its id, because names of keys need not be unique. */
export function keyIdAsUrlValue(id: string | number): string {
  return `#${id}`
}

/** The filters for API keys in a parameter of the page's URL; its values are ids (`#12`) or names. */
export function keyFilters(text: string | undefined): {
  readonly token_id: readonly string[]
  readonly token_name: readonly string[]
} {
  const values = valuesOfUrlText(text)
  return {
    token_id: values.filter((value) => ID.test(value)).map((value) => value.slice(1)),
    token_name: values.filter((value) => !ID.test(value)),
  }
}
