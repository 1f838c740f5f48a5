import { Screen } from "../../parts/screen";

export default function Page() {
  return <Screen title="Bulk review">{null}</Screen>;
}
