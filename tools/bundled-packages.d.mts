interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>
}

export function packedManifest<Given extends Manifest>(
  manifest: Given,
): Given & { readonly engines: { readonly node: string } }
export function bundledPackages(root: string): ReadonlyMap<string, readonly string[]>
