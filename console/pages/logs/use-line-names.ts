import { useTexts } from '../../texts/use-texts.tsx'

/** Kinds that are priced by the million; all others by the piece. */
const BY_THE_MILLION = /(?:^|_)(?:input|cached|output|character|cache_write_\w+)$/
const MODALITY = /^(audio|image)_(.+)$/

/** Names of the lines of a cost. */
export function useLineNames() {
  const { call } = useTexts()
  const names: Readonly<Record<string, string>> = call.lines
  return {
    nameOf: (kind: string): string => {
      const own = names[kind]
      if (own !== undefined) return own
      const [, modality, rest = ''] = MODALITY.exec(kind) ?? []
      if (modality === undefined) return kind
      return call.ofModality(names[rest] ?? rest, call.modalities[modality as 'audio' | 'image'])
    },
    isPerMillion: (kind: string): boolean => BY_THE_MILLION.test(kind),
  }
}
