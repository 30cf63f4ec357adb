import { Transform, type TransformCallback } from 'node:stream'
import { createZstdDecompress } from 'node:zlib'

/**
 * Decoders that one body may have: each costs some 50 µs, and a frame may be nine bytes. Encoders make one
 * frame, or a few.
 */
const MAX_DECODERS = 100

/**
 * A decoder of zstd, frame after frame (RFC 8878, 3: their contents follow each other). Node's own ends with
 * the first frame if more follows in the same write, and reads on if it comes in another: where the network
 * cuts a body would decide what it says.
 */
export class ZstdFrames extends Transform {
  #decoder = this.#newDecoder()
  /** Bytes that the decoder at hand was given. */
  #bytesGiven = 0
  #lastWrite: Buffer = Buffer.alloc(0)
  /** Called when what was written is decoded, or when all is. */
  #callback: TransformCallback = () => {}
  #isLast = false
  #decoders = 1

  override _read(size: number): void {
    this.#decoder.resume()
    super._read(size) // oxlint-disable-line no-underscore-dangle -- the name is Node's
  }

  override _transform(bytes: Buffer, _: BufferEncoding, done: TransformCallback): void {
    this.#callback = done
    this.#write(bytes)
  }

  override _flush(done: TransformCallback): void {
    this.#callback = done
    this.#isLast = true
    this.#decoder.end()
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#decoder.destroy()
    done(error)
  }

  #write(bytes: Buffer): void {
    const decoder = this.#decoder
    this.#lastWrite = bytes
    this.#bytesGiven += bytes.length
    decoder.write(bytes, (error) => {
      // An error is told by the decoder, and bytes that it left by its end, after which another one is at
      // work.
      if (!error && decoder === this.#decoder && decoder.bytesWritten === this.#bytesGiven) this.#callback()
    })
  }

  #onDecoderEnd(left: number): void {
    if (this.#isLast) return this.#callback()
    if (++this.#decoders > MAX_DECODERS) return void this.destroy(new Error('too many frames'))
    this.#decoder = this.#newDecoder()
    this.#bytesGiven = 0
    this.#write(this.#lastWrite.subarray(this.#lastWrite.length - left))
  }

  #newDecoder(): ReturnType<typeof createZstdDecompress> {
    const decoder = createZstdDecompress()
    decoder.on('data', (bytes: Buffer) => {
      if (!this.push(bytes)) decoder.pause()
    })
    decoder.on('error', (error) => this.destroy(error))
    decoder.on('end', () => this.#onDecoderEnd(this.#bytesGiven - decoder.bytesWritten))
    return decoder
  }
}
