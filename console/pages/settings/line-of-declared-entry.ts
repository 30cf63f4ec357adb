import type { DeclaredSettings } from '../../api/options.ts'

type Section = 'options' | 'groups' | 'models'

/**
 * The number of the line on which gateway.yaml declares an entry of a section, or the line of its `field` if
 * it has one; undefined if the file does not declare the entry.
 */
export function lineOfDeclaredEntry(
  { items }: DeclaredSettings,
  section: Section,
  name: string,
  field?: string,
): number | undefined {
  const entry = /^[\w-]+$/.test(name) ? `${section}.${name}` : `${section}[${JSON.stringify(name)}]`
  const inEntry = items.filter(
    ({ path }) => path === entry || path.startsWith(`${entry}.`) || path.startsWith(`${entry}[`),
  )
  return (inEntry.find(({ path }) => path === `${entry}.${field}`) ?? inEntry[0])?.line
}
