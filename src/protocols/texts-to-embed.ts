/** Texts to embed, in a form that the dialects share. */
export interface TextsToEmbed {
  /** At least one text. */
  readonly texts: readonly string[]
  /** Length of the vectors; undefined = the model's own. */
  readonly dimensions: number | undefined
  /** Use that the vectors are for, as Gemini names it; undefined = none in particular. */
  readonly task: string | undefined
}

/** Vectors of texts in their order, each the JSON text of a list of numbers. */
export type Vectors = readonly string[]
