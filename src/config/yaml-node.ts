/** A scalar of the file: what it stands for, and how it is written there. */
export class YamlScalar {
  readonly value: string | number | boolean
  /**
   * As in the file, before variables were put in: fit to be shown, and exact where a number is longer than a
   * double.
   */
  readonly source: string

  constructor(value: string | number | boolean, source: string = String(value)) {
    this.value = value
    this.source = source
  }
}

/** A text whose variables could not be put in: already remarked upon, so that whoever reads it need not. */
export class UnresolvedScalar extends YamlScalar {}

/** The file's content; null and absent are both undefined. Mappings have no prototype. */
export type YamlNode = YamlScalar | undefined | readonly YamlNode[] | { readonly [key: string]: YamlNode }

/** What stands under `key`, if `tree` is a mapping. */
export function child(tree: YamlNode, key: string): YamlNode {
  return isMapping(tree) ? tree[key] : undefined
}

/** The entries of a list; none if `tree` is something else. */
export function items(tree: YamlNode): readonly YamlNode[] {
  return Array.isArray(tree) ? tree : []
}

/** The keys of a mapping; none if `tree` is something else. */
export function keys(tree: YamlNode): readonly string[] {
  return isMapping(tree) ? Object.keys(tree) : []
}

function isMapping(tree: YamlNode): tree is { readonly [key: string]: YamlNode } {
  return typeof tree === 'object' && !Array.isArray(tree) && !(tree instanceof YamlScalar)
}
