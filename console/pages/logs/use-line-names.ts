import { useTexts } from '../../texts/use-texts.tsx'

/** Kinds that are priced by the piece; all others by the million. */
const BY_THE_PIECE: ReadonlySet<string> = new Set(['second', 'image', 'search_unit', 'web_search', 'request'])
const MODALITY = /^(audio|image)_(.+)$/

/** Names of the lines of a cost. */
export function useLineNames() {
  const { call } = useTexts()
  const names: Readonly<Record<string, string>> = call.lines
  return {
    nameOf: (kind: string): string => {
      const [, modality, rest = ''] = MODALITY.exec(kind) ?? []
      if (modality === undefined) return names[kind] ?? kind
      return call.ofModality(names[rest] ?? rest, call.modalities[modality as 'audio' | 'image'])
    },
    isPerMillion: (kind: string): boolean => !BY_THE_PIECE.has(kind),
  }
}
