import { readSync } from 'node:fs'
import {
  ADTS,
  ALL_FORMATS,
  BufferSource,
  CustomSource,
  EncodedPacketSink,
  FLAC,
  Input,
  type InputAudioTrack,
  type InputFormat,
  MP3,
  type Source,
  WAVE,
} from 'mediabunny'
import { serve } from '../../ipc/serve.ts'
import {
  bytesPerSample,
  FLAC_HEADER_BYTES,
  flacLength,
  hasKnownFrames,
  packetLengths,
  type TrackFacts,
} from './packet-length.ts'
import type { RecordingRequests, RecordingToMeasure } from './recording-length.ts'

// Uses mediabunny, which finds packets. music-metadata trusts headers: it read ten hours from ten seconds of
// WAV because a header stated so.

/** Maximum bytes of a recording that are held in memory at the same time. */
const MAX_CACHE_BYTES = 2 * 1024 * 1024
/** Bytes of a FLAC file that are searched for frames at the same time. */
const PIECE_BYTES = 1024 * 1024
/** Minimum size of a WAV file's header, in bytes. */
const MIN_HEADER_BYTES = 44
/** Maximum seconds of silence that encoders put before the sound, and that a file may state as such. */
const MAX_DELAY_SECONDS = 0.25
/** Minimum bytes per second of audio whose frames are not counted. Silence takes less in some codecs. */
const MIN_BYTES_PER_SECOND = 500
/** Maximum processor time in which packets are counted, in milliseconds; the others count by their size. */
const MAX_COUNT_CPU_MS = 2_000
/** Number of packets after which the processor time is checked. */
const CPU_CHECK_PACKETS = 1_000

serve<RecordingRequests>({ measure })

/** Seconds of the longest audio track; undefined if none can be read. */
async function measure(recording: RecordingToMeasure): Promise<number | undefined> {
  using input = new Input({ source: sourceOf(recording), formats: ALL_FORMATS })
  const format = await input.getFormat()
  const tracks = await input.getAudioTracks()
  const lengths = await Promise.all(tracks.map((track) => trackLength(track, format, recording)))
  const seconds = Math.max(0, ...lengths)
  // A part of a second is charged as a second, so the inaccuracy of a sum must not be charged.
  return Number.isFinite(seconds) && seconds > 0 ? Math.round(seconds * 1e6) / 1e6 : undefined
}

/**
 * The length that timestamps state, or that of the sound in all packets if that is longer. Timestamps may
 * state more, because silence needs no packets in some codecs.
 */
async function trackLength(
  track: InputAudioTrack,
  format: InputFormat,
  recording: RecordingToMeasure,
): Promise<number> {
  const facts = await factsOf(track)
  if (format === FLAC) return flacFileLength(recording, facts)
  const duration = await track.computeDuration()
  // These formats have no timestamps: the frames were counted.
  if (format === MP3 || format === ADTS) return duration
  const stated = hasKnownFrames(facts)
    ? duration
    : Math.min(duration, recording.length / MIN_BYTES_PER_SECOND)
  if (format === WAVE) return waveLength(stated, facts, recording)
  const lengths = packetLengths(facts)
  const metadataOnly = 'bySize' in lengths
  const sink = new EncodedPacketSink(track)
  const started = process.threadCpuUsage()
  let counted = 0
  let last = 0
  let bytes = 0
  let packet = await sink.getFirstPacket({ metadataOnly })
  for (let packets = 1; packet; packets++) {
    last = 'bySize' in lengths ? lengths.bySize(packet.byteLength) : lengths.byContent(packet.data)
    counted += last
    bytes += packet.byteLength
    if (packets % CPU_CHECK_PACKETS === 0) {
      const { user, system } = process.threadCpuUsage(started)
      if (user + system > MAX_COUNT_CPU_MS * 1_000) {
        const bySize = (counted * recording.length) / bytes
        return stated < bySize / 2 ? bySize : stated
      }
    }
    packet = await sink.getNextPacket(packet, { metadataOnly })
  }
  return longer(stated, counted, last)
}

/** The length that is stated, unless the counted one is longer by more than a delay and the last packet. */
function longer(stated: number, counted: number, last: number): number {
  return counted - last > stated + MAX_DELAY_SECONDS ? counted : stated
}

async function factsOf(track: InputAudioTrack): Promise<TrackFacts> {
  // Fails where a file has no configuration.
  const config = (await track.getDecoderConfig().catch(() => undefined))?.description
  return {
    codec: await track.getCodec(),
    id: await track.getInternalCodecId(),
    rate: await track.getSampleRate(),
    channels: await track.getNumberOfChannels(),
    config: config && bytesOf(config),
  }
}

function bytesOf(config: ArrayBufferView | ArrayBufferLike): Uint8Array {
  return ArrayBuffer.isView(config)
    ? new Uint8Array(config.buffer, config.byteOffset, config.byteLength)
    : new Uint8Array(config)
}

/** A header may state fewer samples than the file contains, so the length is also computed from the size of the file. */
function waveLength(
  stated: number,
  { codec, rate, channels }: TrackFacts,
  { length }: RecordingToMeasure,
): number {
  const bySize =
    Math.max(0, length - MIN_HEADER_BYTES) / (rate * channels * (bytesPerSample(codec) ?? Infinity))
  return stated < bySize / 2 ? bySize : stated
}

/** The length of all frames in a file: its header may state other sizes of them. */
function flacFileLength(recording: RecordingToMeasure, facts: TrackFacts): number {
  const lengthOf = flacLength(facts)
  let seconds = 0
  for (let at = 0; at < recording.length; at += PIECE_BYTES)
    seconds += lengthOf(
      readPart(recording, at, Math.min(at + PIECE_BYTES + FLAC_HEADER_BYTES, recording.length)),
      PIECE_BYTES,
    )
  return seconds
}

function sourceOf(recording: RecordingToMeasure): Source {
  if (recording.bytes) return new BufferSource(recording.bytes)
  return new CustomSource({
    getSize: () => recording.length,
    read: (start, end) => readPart(recording, start, end),
    maxCacheSize: MAX_CACHE_BYTES,
  })
}

function readPart({ bytes, file, from }: RecordingToMeasure, start: number, end: number): Uint8Array {
  if (bytes) return bytes.subarray(start, end)
  const part = Buffer.allocUnsafe(end - start)
  return part.subarray(0, readSync(file ?? -1, part, 0, part.length, from + start))
}
