import { readSync } from 'node:fs'
import { ALL_FORMATS, BufferSource, CustomSource, Input, type Source } from 'mediabunny'
import { serve } from '../../ipc/serve.ts'
import type { RecordingRequests, RecordingToMeasure } from './recording-length.ts'

// Uses mediabunny, which counts packets. music-metadata trusts headers: it read ten hours from ten seconds of
// WAV because a header stated so.

/** Maximum bytes of a recording that are held in memory at the same time. */
const MAX_CACHE_BYTES = 2 * 1024 * 1024
/** Minimum size of a WAV file's header, in bytes. */
const MIN_HEADER_BYTES = 44
/** Matches the number of bits per sample in the name of an uncompressed encoding, such as `pcm-s16`. */
const SAMPLE_BYTES = /^pcm-[suf](\d+)/

serve<RecordingRequests>({ measure })

/** Seconds of the longest audio track; undefined if none can be read. */
async function measure(recording: RecordingToMeasure): Promise<number | undefined> {
  using input = new Input({ source: sourceOf(recording), formats: ALL_FORMATS })
  const lengths = await Promise.all(
    (await input.getAudioTracks()).map(async (track) => {
      const byPackets = await track.computeDuration()
      const bytesPerSample = Number(SAMPLE_BYTES.exec(String(await track.getCodec()))?.[1] ?? 0) / 8
      if (bytesPerSample === 0) return byPackets
      const rate = (await track.getSampleRate()) * (await track.getNumberOfChannels()) * bytesPerSample
      // A header may state fewer samples than the file contains, so the length is also computed from the size
      // of the file.
      const bySize = Math.max(0, recording.length - MIN_HEADER_BYTES) / rate
      return byPackets < bySize / 2 ? bySize : byPackets
    }),
  )
  const seconds = Math.max(0, ...lengths)
  return Number.isFinite(seconds) && seconds > 0 ? seconds : undefined
}

function sourceOf({ bytes, file, from, length }: RecordingToMeasure): Source {
  if (bytes) return new BufferSource(bytes)
  return new CustomSource({
    getSize: () => length,
    read: (start, end) => {
      const piece = Buffer.allocUnsafe(end - start)
      const read = readSync(file ?? -1, piece, 0, piece.length, from + start)
      return piece.subarray(0, read)
    },
    maxCacheSize: MAX_CACHE_BYTES,
  })
}
